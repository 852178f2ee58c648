#include "common/memory.h"

#include <gtest/gtest.h>

#include "common/file.h"

namespace outrigger {
namespace {

TEST(Memory, OfTheMachineIsWhatIsLeftToAll) {
  const TemporaryDirectory folder;
  const auto meminfo = folder.path() / "meminfo";
  EXPECT_EQ(machine_memory(meminfo), std::nullopt);
  write_file_atomically(meminfo, "MemTotal: 4000 kB\nMemFree: 10 kB\nMemAvailable: 3000 kB\n");
  EXPECT_EQ(machine_memory(meminfo), 3000u * 1024);
}

TEST(Memory, ThatIsFreeIsNoMoreThanTheMachineHasLeft) {
  constexpr uint64_t kMeanwhile = 1u << 30;  // others go on
  ASSERT_TRUE(machine_memory());
  EXPECT_GT(free_memory(), 0u);
  EXPECT_LE(free_memory(), *machine_memory() + kMeanwhile);
  EXPECT_LE(free_memory(), available_memory());
}

}  // namespace
}  // namespace outrigger
