#include "nn/cuda/memory_book.h"

#include <gtest/gtest.h>

namespace outrigger::nn::cuda {
namespace {

TEST(MemoryBook, AddsUpWhatIsTakenForTheSameAndForgetsWhatIsReleased) {
  MemoryBook book;
  std::byte places[4];
  book.taken(&places[0], 1 << 20, "weights");
  book.taken(&places[1], 3 << 20, "tape");
  book.taken(&places[2], 1 << 20, "weights");
  book.taken(&places[3], 7, "gone");
  book.released(&places[3]);
  const auto uses = book.uses();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].what, "tape");
  EXPECT_EQ(uses[1].bytes, 2 << 20);
  EXPECT_EQ(describe(uses), "5.0 MiB: 3.0 MiB tape, 2.0 MiB weights");
  EXPECT_EQ(describe(uses, 1), "5.0 MiB: 3.0 MiB tape, 2.0 MiB 1 more");
  EXPECT_EQ(describe(std::vector<MemoryUse>{}), "0.0 MiB");
}

}  // namespace
}  // namespace outrigger::nn::cuda
