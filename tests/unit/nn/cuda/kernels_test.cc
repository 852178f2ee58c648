#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/random.h"
#include "common/tensor.h"
#include "host_engine.h"
#include "nn/angular_margin.h"
#include "nn/cuda/kernels/margin.h"
#include "nn/cuda/kernels/random.h"
#include "nn/cuda/kernels/scalar.h"
#include "nn/dropout.h"

namespace outrigger::nn::cuda {
namespace {

using testing::host_kernels;

Array floats(std::vector<float>& values) { return {Stored::kFloat32, values.data()}; }

TEST(BFloat16, RoundsAsEverywhereElse) {
  RandomStream random(1, RandomUse::kSyntheticData, 9);
  for (int i = 0; i < 100'000; ++i) {
    const float value = float_of(random.next_u32());
    BFloat16 stored{};
    store(&stored, value);
    ASSERT_EQ(stored.bits, to_bfloat16(value)) << value;
    if (!std::isnan(value)) {
      ASSERT_EQ(to_float(stored), from_bfloat16(stored.bits));
    }
  }
}

TEST(DropoutFactor, IsWhatEveryBackendDraws) {
  const DropoutKey key{.seed = 77, .slot = 0x1234567890ABCDEFull, .layer = 5};
  constexpr float kProbability = 0.3f;
  std::vector<float> expected(1001);
  dropout_factors(key, kProbability, expected);
  const auto random = random_key(key.seed, RandomUse::kDropout);
  DropoutDraw draw;
  draw.key[0] = random[0];
  draw.key[1] = random[1];
  draw.layer = 5;
  draw.threshold = static_cast<uint32_t>(static_cast<double>(kProbability) * 0x1.0p32);
  draw.kept = 1.0f / (1.0f - kProbability);
  for (uint32_t e = 0; e < expected.size(); ++e)
    ASSERT_EQ(dropout_factor(draw, key.slot, e), expected[e]) << e;
}

TEST(MarginCosine, IsTheSharedFunction) {
  for (const float margin : {0.0f, 0.1f, 0.5f, 1.5f}) {
    for (int thousandths = -1010; thousandths <= 1010; ++thousandths) {
      const float cosine = static_cast<float>(thousandths) / 1000;
      const MarginCosine expected = add_angular_margin(cosine, margin);
      ASSERT_EQ(margin_cosine(cosine, margin, false), expected.value) << cosine << " " << margin;
      ASSERT_EQ(margin_cosine(cosine, margin, true), expected.slope) << cosine << " " << margin;
    }
  }
}

TEST(Measure, KeepsDigitsWhereTheMeanIsFarFromZero) {
  constexpr uint32_t kRows = 1000;
  std::vector<float> x(kRows), statistics(2), mean_inverse(2);
  double mean = 0, variance = 0;
  for (uint32_t i = 0; i < kRows; ++i) mean += x[i] = 10'000.0f + static_cast<float>(i % 7);
  mean /= kRows;
  for (const float value : x) variance += (value - mean) * (value - mean) / kRows;
  host_kernels().measure({.x = floats(x),
                          .epsilon = 1e-5f,
                          .statistics = statistics.data(),
                          .mean_inverse = mean_inverse.data()},
                         {kRows, 1});
  EXPECT_NEAR(statistics[0], mean, 1e-3);
  EXPECT_NEAR(statistics[1], variance, 1e-4);
  EXPECT_NEAR(mean_inverse[1], 1 / std::sqrt(variance + 1e-5), 1e-5);
}

TEST(FinishMeasure, MakesOfSumsWhatMeasureMakes) {
  std::vector<float> x{1, -2, 3, 6, 2, 2}, statistics(4), mean_inverse(4);
  host_kernels().measure({.x = floats(x),
                          .epsilon = 1e-5f,
                          .statistics = statistics.data(),
                          .mean_inverse = mean_inverse.data()},
                         {3, 2});
  std::vector<float> finished(4), sums{6, 6, 14, 44};
  host_kernels().finish_measure(
      {.epsilon = 1e-5f, .statistics = finished.data(), .mean_inverse = sums.data()}, {3, 2});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(finished[i], statistics[i]);
    EXPECT_FLOAT_EQ(sums[i], mean_inverse[i]);
  }
}

TEST(FinishMeasure, HasNoVarianceBelowZeroAndLetsNanThrough) {
  std::vector<float> statistics(4), sums{30, 1, 299.9f, std::numeric_limits<float>::quiet_NaN()};
  host_kernels().finish_measure(
      {.epsilon = 0.25f, .statistics = statistics.data(), .mean_inverse = sums.data()}, {3, 2});
  EXPECT_EQ(statistics[2], 0);
  EXPECT_EQ(sums[2], 2);
  EXPECT_TRUE(std::isnan(statistics[3]));
  EXPECT_TRUE(std::isnan(sums[3]));
}

TEST(Mask, LeavesWhatAReluPassedAndSumsIt) {
  std::vector<float> y{0, 1, 2, 0}, dy{1, 2, 3, 4}, sums(2);
  host_kernels().mask(floats(y), floats(dy), sums.data(), {2, 2});
  EXPECT_EQ(dy, (std::vector<float>{0, 2, 3, 0}));
  EXPECT_EQ(sums, (std::vector<float>{3, 2}));
  dy = {1, 2, 3, 4};
  host_kernels().mask(floats(y), floats(dy), nullptr, {2, 2});
  EXPECT_EQ(dy, (std::vector<float>{0, 2, 3, 0}));
}

TEST(AddBias, LetsAReluPassWhatIsPositive) {
  const std::vector<float> bias{1, -1};
  std::vector<float> y{1, 0.5f, -3, 2};
  host_kernels().add_bias(floats(y), bias.data(), true, {2, 2});
  EXPECT_EQ(y, (std::vector<float>{2, 0, 0, 1}));
  host_kernels().add_bias(floats(y), bias.data(), false, {2, 2});
  EXPECT_EQ(y, (std::vector<float>{3, -1, 1, 0}));
}

TEST(Activations, LetNanThrough) {
  std::vector<float> x{std::numeric_limits<float>::quiet_NaN(), -1, 2}, y(3);
  host_kernels().activate(floats(x), nullptr, floats(y), {3, 1});
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 2);
}

TEST(Convert, AddsOrOverwrites) {
  std::vector<float> from{1, 2}, to{10, 20};
  host_kernels().convert(floats(from), floats(to), 2, true);
  EXPECT_EQ(to, (std::vector<float>{11, 22}));
  host_kernels().convert(floats(from), floats(to), 2, false);
  EXPECT_EQ(to, from);
}

TEST(Weights, GoToTheDevicesLayoutAndBack) {
  ConvolutionShape shape;
  shape.in_channels = 4;
  shape.out_channels = 6;
  shape.groups = 2;
  shape.kernel = 3;
  std::vector<float> weights(shape.weights()), packed(shape.weights()), back(shape.weights());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  host_kernels().pack_weights(weights.data(), floats(packed), shape);
  // Output 1, place (0, 2), input 1 of its group: {6, 2, 3, 3} in PyTorch, {6, 3, 3, 2} here.
  EXPECT_EQ(packed[(1 * 9 + 2) * 2 + 1], weights[(1 * 2 + 1) * 9 + 2]);
  host_kernels().unpack_weights(floats(packed), back.data(), shape);
  EXPECT_EQ(back, weights);
}

}  // namespace
}  // namespace outrigger::nn::cuda
