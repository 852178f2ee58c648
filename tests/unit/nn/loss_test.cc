#include "nn/loss.h"

#include <gmock/gmock.h>

#include <cmath>

#include "nn/angular_margin.h"
#include "nn/dropout.h"

#include "common/random.h"

namespace outrigger::nn {
namespace {

struct Batch {
  std::vector<float> logits;
  std::vector<float> gradient;
  LossResult result;
};

Batch loss_of(std::vector<float> logits, const std::vector<int32_t>& labels, float smoothing) {
  Batch batch{std::move(logits), {}, {}};
  batch.gradient.resize(batch.logits.size());
  const auto m = static_cast<int64_t>(labels.size());
  const Shape shape{m, static_cast<int64_t>(batch.logits.size()) / m};
  batch.result = softmax_cross_entropy(
      {ElementType::kFloat32, shape, reinterpret_cast<const std::byte*>(batch.logits.data())},
      labels, smoothing,
      {ElementType::kFloat32, shape, reinterpret_cast<std::byte*>(batch.gradient.data())});
  return batch;
}

TEST(SoftmaxCrossEntropy, IsTheSumOverSamplesOfMinusTheLogOfTheLabelsProbability) {
  const Batch batch = loss_of({0, 0, 0, std::log(2.0f), 0, 0}, {1, 0}, 0);
  EXPECT_NEAR(batch.result.loss_sum, std::log(3.0) + std::log(2.0), 1e-6);
  EXPECT_EQ(batch.result.correct, 1);
  const std::vector<float> expected{1 / 3.f, -2 / 3.f, 1 / 3.f, -0.5f, 0.25f, 0.25f};
  EXPECT_THAT(batch.gradient, ::testing::Pointwise(::testing::FloatEq(), expected));
}

TEST(SoftmaxCrossEntropy, SmoothingSpreadsOverAllClassesLikePyTorchs) {
  const Batch batch = loss_of({1, 0, 0, 0}, {0}, 0.2f);
  const double total = std::exp(1.0) + 3;
  EXPECT_NEAR(batch.result.loss_sum, std::log(total) - 0.8 * 1 - 0.2 * 0.25, 1e-6);
  EXPECT_NEAR(batch.gradient[0], std::exp(1.0) / total - 0.85, 1e-6);
  EXPECT_NEAR(batch.gradient[3], 1 / total - 0.05, 1e-6);
}

TEST(SampleCrossEntropy, HasTheBitsOfABatchOfOne) {
  RandomStream random(3, RandomUse::kSyntheticData, 0);
  for (int32_t label = 0; label < 5; ++label) {
    std::vector<float> logits(1000);
    for (float& logit : logits) logit = 20 * random.uniform() - 10;
    logits[7] = logits[3] = 11;  // the first of equals counts
    const LossResult one = sample_cross_entropy(logits, label);
    const Batch batch = loss_of(logits, {label}, 0);
    EXPECT_EQ(one.loss_sum, batch.result.loss_sum);
    EXPECT_EQ(one.correct, label == 3 ? 1 : 0);
    EXPECT_EQ(batch.result.correct, one.correct);
  }
  const std::vector<float> none{0, INFINITY, NAN};
  EXPECT_FALSE(std::isfinite(sample_cross_entropy(none, 0).loss_sum));
}

TEST(SoftmaxCrossEntropy, LargeLogitsDoNotOverflow) {
  const Batch batch = loss_of({1000, -1000}, {1}, 0);
  EXPECT_DOUBLE_EQ(batch.result.loss_sum, 2000);
  EXPECT_THAT(batch.gradient, ::testing::ElementsAre(1.0f, -1.0f));
}

TEST(SoftmaxCrossEntropy, ALossThatIsNotFiniteIsReturnedAsSuch) {
  EXPECT_FALSE(std::isfinite(loss_of({NAN, 0, 0}, {1}, 0).result.loss_sum));
  EXPECT_FALSE(std::isfinite(loss_of({0, 0, NAN}, {1}, 0).result.loss_sum));
  EXPECT_FALSE(std::isfinite(loss_of({INFINITY, 0, 0}, {1}, 0).result.loss_sum));
}

TEST(SoftmaxCrossEntropy, OfEqualLogitsTheFirstIsTheAnswer) {
  EXPECT_EQ(loss_of({1, 1, 0, 1, 1, 0}, {0, 1}, 0).result.correct, 1);
}

TEST(AngularMargin, IsTheCosineOfTheLargerAngleAndItsSlope) {
  for (const double theta : {0.3, 1.0, 2.0, 2.6}) {
    const MarginCosine moved = add_angular_margin(static_cast<float>(std::cos(theta)), 0.5f);
    EXPECT_NEAR(moved.value, std::cos(theta + 0.5), 1e-6) << theta;
    EXPECT_NEAR(moved.slope, std::sin(theta + 0.5) / std::sin(theta), 1e-5) << theta;
  }
}

TEST(AngularMargin, FallsWithTheAngleOverTheWholeCircleAndIsFiniteAtItsEnds) {
  float last = 2;
  for (int i = 0; i <= 1000; ++i) {
    const MarginCosine moved =
        add_angular_margin(static_cast<float>(std::cos(i * 0.001 * M_PI)), 0.5f);
    EXPECT_LT(moved.value, last + 1e-6f) << i;
    EXPECT_TRUE(std::isfinite(moved.slope)) << i;
    last = moved.value;
  }
  EXPECT_TRUE(std::isfinite(add_angular_margin(1.0000001f, 0.5f).slope));
  EXPECT_TRUE(std::isfinite(add_angular_margin(-1.0000001f, 0.5f).value));
}

TEST(Dropout, DrawsTheNumbersOfItsStream) {
  const DropoutKey key{7, 0x123456789ABCDEF0ull, 12};
  std::vector<float> factors(1000);
  dropout_factors(key, 0.25f, factors);
  RandomStream random(key.seed, RandomUse::kDropout, key.slot, 12);
  for (size_t i = 0; i < factors.size(); ++i) {
    EXPECT_EQ(factors[i], random.next_u32() < 0x40000000u ? 0.0f : 1.0f / 0.75f) << i;
  }
}

TEST(Dropout, DropsTheAskedShareAndDiffersBySampleAndLayer) {
  std::vector<float> factors(100000), other(100000);
  dropout_factors({1, 2, 3}, 0.3f, factors);
  const auto dropped = std::count(factors.begin(), factors.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped), 30000, 5 * 145);  // five deviations of a binomial
  dropout_factors({1, 3, 3}, 0.3f, other);
  EXPECT_NE(factors, other);
  dropout_factors({1, 2, 4}, 0.3f, other);
  EXPECT_NE(factors, other);
}

TEST(Dropout, AShorterSampleHasAPrefixOfTheSameMask) {
  std::vector<float> factors(131), shorter(67);
  dropout_factors({1, 2, 3}, 0.5f, factors);
  dropout_factors({1, 2, 3}, 0.5f, shorter);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), factors.begin()));
}

}  // namespace
}  // namespace outrigger::nn
