#include "nn/loss_scale.h"

#include <gtest/gtest.h>

namespace outrigger::nn {
namespace {

constexpr LossScaling kShort{.good_steps_to_grow = 3};

TEST(LossScale, HalvesAtOnceWhereGradientsAreNotFinite) {
  const auto next = next_scale(kShort, {1024, 2}, false);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->value, 512);
  EXPECT_EQ(next->good_steps, 0);
}

TEST(LossScale, DoublesAfterGoodStepsInARow) {
  LossScale scale{1024, 0};
  for (const float expected : {1024.0f, 1024.0f, 2048.0f, 2048.0f, 2048.0f, 4096.0f}) {
    scale = *next_scale(kShort, scale, true);
    EXPECT_EQ(scale.value, expected);
  }
}

TEST(LossScale, CountsAnewAfterABadStep) {
  LossScale scale{1024, 2};
  scale = *next_scale(kShort, scale, false);
  scale = *next_scale(kShort, scale, true);
  scale = *next_scale(kShort, scale, true);
  EXPECT_EQ(scale.value, 512) << "two good steps do not make three";
}

TEST(LossScale, StaysBetweenItsBounds) {
  EXPECT_EQ(next_scale(kShort, {kShort.most, 2}, true)->value, kShort.most);
  EXPECT_EQ(next_scale(kShort, {1.5f, 0}, false)->value, kShort.least);
  EXPECT_FALSE(next_scale(kShort, {kShort.least, 0}, false)) << "no scale would help";
}

}  // namespace
}  // namespace outrigger::nn
