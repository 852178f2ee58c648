#include "nn/cuda/errors.h"

#include <gtest/gtest.h>

namespace outrigger::nn::cuda {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(Shortage, SaysWhatWasAskedWhatIsFreeAndWhatWouldFit) {
  EXPECT_EQ(describe({.what = "activations",
                      .asked = 12 * kGiB,
                      .free = 3 * kGiB,
                      .total = 16 * kGiB,
                      .batch = 64}),
            "the device's memory is too small: asked for 12.0 GiB for activations; 3.0 GiB of 16.0 "
            "GiB are free; a micro-batch of 16 would fit");
}

TEST(Shortage, OfWhatDoesNotGrowWithTheBatchSaysNoMore) {
  EXPECT_EQ(describe({.what = "weights", .asked = 2048, .free = 512, .total = 4096, .batch = 0}),
            "the device's memory is too small: asked for 2.0 KiB for weights; 512 bytes of 4.0 KiB "
            "are free");
}

TEST(Shortage, SaysWhereNotEvenOneSampleFits) {
  const std::string text =
      describe({.what = "activations", .asked = 100, .free = 1, .total = 100, .batch = 8});
  EXPECT_NE(text.find("not even one sample would fit"), std::string::npos) << text;
}

}  // namespace
}  // namespace outrigger::nn::cuda
