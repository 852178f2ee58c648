#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/random.h"
#include "host_engine.h"
#include "nn/loss.h"

namespace outrigger::nn::cuda {
namespace {

using testing::host_kernels;

struct Losses {
  LossResult sum;
  std::vector<float> gradient;
};

Losses by_kernel(const std::vector<float>& logits, const std::vector<int32_t>& labels,
                 float smoothing, float scale) {
  const auto rows = static_cast<uint32_t>(labels.size());
  const auto columns = static_cast<uint32_t>(logits.size()) / rows;
  Losses losses{{}, std::vector<float>(logits.size())};
  std::vector<float> results(2 * size_t{rows});
  host_kernels().softmax_loss(logits.data(), labels.data(), smoothing, scale,
                              losses.gradient.data(), results.data(), {rows, columns});
  for (size_t row = 0; row < rows; ++row) {
    losses.sum.loss_sum += static_cast<double>(results[2 * row]);
    losses.sum.correct += static_cast<int64_t>(results[2 * row + 1]);
  }
  return losses;
}

Losses by_host(const std::vector<float>& logits, const std::vector<int32_t>& labels,
               float smoothing) {
  const auto rows = static_cast<int64_t>(labels.size());
  const Shape shape{rows, static_cast<int64_t>(logits.size()) / rows};
  Losses losses{{}, std::vector<float>(logits.size())};
  losses.sum = softmax_cross_entropy(
      {ElementType::kFloat32, shape, reinterpret_cast<const std::byte*>(logits.data())}, labels,
      smoothing,
      {ElementType::kFloat32, shape, reinterpret_cast<std::byte*>(losses.gradient.data())});
  return losses;
}

std::vector<float> draw(size_t count, float spread) {
  RandomStream random(3, RandomUse::kSyntheticData, count);
  std::vector<float> values(count);
  for (float& value : values) value = spread * (2 * random.uniform() - 1);
  return values;
}

TEST(SoftmaxLoss, IsThatOfTheHost) {
  for (const uint32_t columns : {1u, 2u, 3u, 10u, 129u, 1000u}) {
    for (const float smoothing : {0.0f, 0.1f}) {
      const auto logits = draw(size_t{7} * columns, 60);
      std::vector<int32_t> labels(7);
      for (size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<int32_t>((i * 37) % columns);
      const Losses expected = by_host(logits, labels, smoothing);
      const Losses actual = by_kernel(logits, labels, smoothing, 1);
      // Seven losses, each of differences of logits up to 60, with some roundings of float32.
      EXPECT_NEAR(actual.sum.loss_sum, expected.sum.loss_sum, 7 * 8 * 60 * 0x1p-24);
      EXPECT_EQ(actual.sum.correct, expected.sum.correct);
      for (size_t i = 0; i < logits.size(); ++i)
        ASSERT_NEAR(actual.gradient[i], expected.gradient[i], 1e-6) << columns << " " << i;
    }
  }
}

TEST(SoftmaxLoss, TakesTheFirstOfEqualLogits) {
  const std::vector<float> logits{1, 5, 5, 0, 5, 2};
  EXPECT_EQ(by_kernel(logits, {1}, 0, 1).sum.correct, 1);
  EXPECT_EQ(by_kernel(logits, {2}, 0, 1).sum.correct, 0);
  EXPECT_EQ(by_kernel(logits, {4}, 0, 1).sum.correct, 0);
}

TEST(SoftmaxLoss, ScalesTheGradientAndNotTheLoss) {
  const auto logits = draw(40, 3);
  const std::vector<int32_t> labels{3, 1, 4, 1};
  const Losses plain = by_kernel(logits, labels, 0, 1), scaled = by_kernel(logits, labels, 0, 1024);
  EXPECT_EQ(plain.sum.loss_sum, scaled.sum.loss_sum);
  for (size_t i = 0; i < logits.size(); ++i)
    ASSERT_EQ(scaled.gradient[i], 1024 * plain.gradient[i]);
}

TEST(SoftmaxLoss, LetsNanThrough) {
  std::vector<float> logits{1, std::numeric_limits<float>::quiet_NaN(), 2};
  EXPECT_TRUE(std::isnan(by_kernel(logits, {0}, 0, 1).sum.loss_sum));
  logits[1] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(by_kernel(logits, {0}, 0, 1).sum.loss_sum));
}

double total(const std::vector<double>& sums, size_t row) {
  double all = 0;
  for (size_t i = 0; i < kNormColumns; ++i) all += sums[row * kNormColumns + i];
  return all;
}

TEST(NormOfArray, CoversEveryValueOnce) {
  for (const uint32_t count : {1u, 1023u, 1024u, 1025u, 5000u}) {
    const auto values = draw(count, 2);
    double expected = 0;
    for (const float value : values) expected += double{value} * value;
    std::vector<double> sums(2 * size_t{kNormColumns}, -1);
    host_kernels().norm_of_array(values.data(), count, sums.data());
    EXPECT_NEAR(total(sums, 0), expected, 1e-6 * expected) << count;
    EXPECT_EQ(total(sums, 1), 0);
  }
}

TEST(NormOfArray, TellsOfASingleValueThatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    auto values = draw(3000, 2);
    values[2999] = bad;
    std::vector<double> sums(2 * size_t{kNormColumns});
    host_kernels().norm_of_array(values.data(), 3000, sums.data());
    EXPECT_FALSE(std::isfinite(total(sums, 0)));
    EXPECT_TRUE(std::isnan(total(sums, 1)));
  }
  auto values = draw(3000, 2);
  values[7] = 1e30f;
  std::vector<double> sums(2 * size_t{kNormColumns});
  host_kernels().norm_of_array(values.data(), 3000, sums.data());
  EXPECT_EQ(total(sums, 1), 0) << "its square is infinite, it is not";
}

TEST(ScaleAdd, AddsAndScales) {
  const std::vector<float> from{1, 2, 3};
  std::vector<float> to{10, 20, 30};
  host_kernels().add_scaled(from.data(), 0.5f, to.data(), 3);
  EXPECT_EQ(to, (std::vector<float>{10.5f, 21, 31.5f}));
  host_kernels().scale(to.data(), 2, 2);
  EXPECT_EQ(to, (std::vector<float>{21, 42, 31.5f}));
}

}  // namespace
}  // namespace outrigger::nn::cuda
