#include "common/large_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace outrigger {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

uintptr_t address(const LargeMemory& memory) { return reinterpret_cast<uintptr_t>(memory.data()); }

TEST(LargeMemory, HasItsBytesAtACacheLineWhateverItsSize) {
  for (const size_t bytes : {size_t{1}, size_t{100}, 4 * kMiB - 1, 4 * kMiB, 9 * kMiB + 77}) {
    LargeMemory memory(bytes);
    ASSERT_EQ(memory.bytes(), bytes);
    EXPECT_EQ(address(memory) % 64, 0u) << bytes;
    memory.data()[0] = std::byte{1};
    memory.data()[bytes - 1] = std::byte{2};
    if (bytes > 1) EXPECT_EQ(memory.data()[0], std::byte{1});
    if (bytes >= 4 * kMiB)
      EXPECT_EQ(address(memory) % (2 * kMiB), 0u) << "a huge page begins there";
  }
}

TEST(LargeMemory, OfNothingIsNothing) {
  EXPECT_EQ(LargeMemory(0).data(), nullptr);
  EXPECT_EQ(LargeMemory().bytes(), 0u);
}

TEST(LargeMemory, MovesAndGoesOnce) {
  LargeMemory large(5 * kMiB), small(10);
  const auto at = address(large);
  large.data()[kMiB] = std::byte{7};
  small = std::move(large);
  EXPECT_EQ(address(small), at);
  EXPECT_EQ(small.data()[kMiB], std::byte{7});
  const LargeMemory again = std::move(small);
  EXPECT_EQ(address(again), at);
  EXPECT_EQ(again.bytes(), 5 * kMiB);
}

}  // namespace
}  // namespace outrigger
