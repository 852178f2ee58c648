#include "nn/cuda/device_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::nn::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

DeviceFacts good() {
  DeviceFacts facts;
  facts.driver_version = 13000;
  facts.runtime_version = 13000;
  facts.device_count = 1;
  facts.name = "NVIDIA H200";
  facts.capability = 90;
  return facts;
}

TEST(WhyUnusable, SaysNothingOfADeviceThatCanBeUsed) {
  for (const int capability : {75, 80, 86, 89, 90, 100, 103, 120}) {
    DeviceFacts facts = good();
    facts.capability = capability;
    EXPECT_EQ(why_unusable(facts), std::nullopt) << capability;
  }
}

TEST(WhyUnusable, NamesTheMissingDriver) {
  DeviceFacts facts = good();
  facts.driver_version = 0;
  EXPECT_THAT(why_unusable(facts), Optional(HasSubstr("no NVIDIA driver answers")));
}

TEST(WhyUnusable, NamesADriverThatIsTooOldWithBothVersions) {
  DeviceFacts facts = good();
  facts.driver_version = 12080;
  EXPECT_THAT(why_unusable(facts),
              Optional(HasSubstr("speaks CUDA 12.8, and this build needs 13.0")));
  facts.driver_version = 14010;
  EXPECT_EQ(why_unusable(facts), std::nullopt) << "newer drivers run older builds";
  facts.driver_version = 13000;
  facts.runtime_version = 13020;
  EXPECT_EQ(why_unusable(facts), std::nullopt) << "minor versions are compatible";
}

TEST(WhyUnusable, SaysThatThereIsNoGpuAndWhatCudaAnswered) {
  DeviceFacts facts = good();
  facts.device_count = 0;
  facts.count_error = "no CUDA-capable device is detected";
  EXPECT_THAT(why_unusable(facts),
              Optional(HasSubstr("CUDA finds no GPU (no CUDA-capable device is detected)")));
}

TEST(WhyUnusable, SaysHowManyGpusThereAre) {
  DeviceFacts facts = good();
  facts.wanted = 2;
  EXPECT_THAT(why_unusable(facts), Optional(HasSubstr("GPU 2 is not there: this process sees 1")));
}

TEST(WhyUnusable, NamesAnArchitectureWithoutCode) {
  DeviceFacts facts = good();
  facts.name = "Tesla V100";
  facts.capability = 70;
  const auto why = why_unusable(facts);
  EXPECT_THAT(why, Optional(HasSubstr("GPU 0 (Tesla V100) has compute capability 7.0")));
  EXPECT_THAT(why, Optional(HasSubstr("7.5, 8.0, 9.0, 10.0 and newer")));
}

TEST(WhyUnusable, RefusesBFloat16WhereAGpuHasNone) {
  DeviceFacts facts = good();
  facts.wants_bfloat16 = true;
  EXPECT_EQ(why_unusable(facts), std::nullopt);
  facts.name = "Tesla T4";
  facts.capability = 75;
  EXPECT_THAT(why_unusable(facts), Optional(HasSubstr("bfloat16 needs 8.0; write "
                                                      "spec.training.precision: Float32")));
}

}  // namespace
}  // namespace outrigger::nn::cuda
