#include "common/large_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <utility>

namespace outrigger {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

uintptr_t address(const LargeMemory& memory) { return reinterpret_cast<uintptr_t>(memory.data()); }

/// Pages that this process has used for the first time.
long faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(LargeMemory, HasItsBytesAtACacheLineWhateverItsSize) {
  for (const size_t bytes : {size_t{1}, size_t{100}, kMiB - 1, kMiB, 9 * kMiB + 77}) {
    LargeMemory memory(bytes);
    ASSERT_EQ(memory.bytes(), bytes);
    EXPECT_EQ(address(memory) % 64, 0u) << bytes;
    memory.data()[0] = std::byte{1};
    memory.data()[bytes - 1] = std::byte{2};
    EXPECT_EQ(memory.data()[bytes - 1], std::byte{2});
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

TEST(LargeMemory, OfAnotherSizeUsesItsPagesAgain) {
  LargeMemory memory(64 * kMiB);
  memory.use();
  long before = faults();
  memory.resize(40 * kMiB);
  memory.use();
  EXPECT_LT(faults() - before, 100) << "of 10,240 pages";
  before = faults();
  memory.resize(60 * kMiB);
  memory.use();
  EXPECT_EQ(memory.bytes(), 60 * kMiB);
  EXPECT_GT(faults() - before, 0) << "those beyond were given back";
}

TEST(LargeMemory, GoesFromSmallToLargeAndBack) {
  LargeMemory memory(100);
  for (const size_t bytes : {2 * kMiB, size_t{7}, size_t{0}, 3 * kMiB + 1}) {
    memory.resize(bytes);
    ASSERT_EQ(memory.bytes(), bytes);
    memory.use();
  }
}

}  // namespace
}  // namespace outrigger
