#include "nn/cpu/operations/weight_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/random.h"
#include "common/tensor.h"
#include "nn/cpu/instruction_set.h"
#include "nn/cpu/onednn/weight_layout.h"

/// Convolutions over few pixels with many channels, whose weight gradients are matrix products
/// where the machine has AMX, and oneDNN's own elsewhere: both against plain loops in double.
namespace outrigger::nn::cpu {
namespace {

struct Case {
  int64_t in_side, in_channels, out_channels, kernel, stride, padding, samples;
  int64_t out_side() const { return (in_side + 2 * padding - kernel) / stride + 1; }
  ConvolutionShape shape() const {
    return {in_side, in_side, in_channels, out_side(), out_side(), out_channels,
            kernel,  stride,  padding,     1,          false,      true};
  }
};

std::vector<uint16_t> draw(int64_t count, uint32_t field) {
  RandomStream random(1, RandomUse::kSyntheticData, 0, field);
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& value : values) value = to_bfloat16(random.normal());
  return values;
}

struct Inputs {
  explicit Inputs(const Case& c)
      : x(draw(c.samples * c.in_side * c.in_side * c.in_channels, 1)),
        dy(draw(c.samples * c.out_side() * c.out_side() * c.out_channels, 2)) {}
  std::vector<uint16_t> x, dy;
};

// In PyTorch's layout, by the definition.
double expected(const Case& c, const Inputs& in, int64_t out, int64_t channel, int64_t row,
                int64_t column) {
  double sum = 0;
  const int64_t side = c.out_side();
  for (int64_t place = 0; place < c.samples * side * side; ++place) {
    const int64_t y = place / side % side * c.stride + row - c.padding;
    const int64_t x = place % side * c.stride + column - c.padding;
    if (y < 0 || x < 0 || y >= c.in_side || x >= c.in_side) continue;
    const int64_t pixel = (place / (side * side) * c.in_side + y) * c.in_side + x;
    sum += double{from_bfloat16(in.x[static_cast<size_t>(pixel * c.in_channels + channel)])} *
           double{from_bfloat16(in.dy[static_cast<size_t>(place * c.out_channels + out)])};
  }
  return sum;
}

std::vector<float> computed(const Case& c, const Inputs& in) {
  const WeightGradient gradient(c.shape(), c.samples, 1);
  const onednn::WeightLayout layout(gradient.layout());
  std::vector<std::byte> scratchpad(gradient.scratchpad_bytes() + 64);
  std::vector<float> packed(static_cast<size_t>(layout.bytes()) / sizeof(float), NAN);
  gradient.execute(0, scratchpad.data(), std::as_bytes(std::span(in.x)).data(),
                   std::as_bytes(std::span(in.dy)).data(),
                   std::as_writable_bytes(std::span(packed)).data());
  std::vector<float> tile(layout.tile_bytes() / sizeof(float));
  std::vector<float> plain(
      static_cast<size_t>(c.out_channels * c.in_channels * c.kernel * c.kernel));
  for (int task = 0; task < layout.tasks(); ++task)
    layout.sum(task, {packed.data(), 1, 0}, tile.data(), plain.data());
  return plain;
}

class WeightGradients : public ::testing::TestWithParam<Case> {};

TEST_P(WeightGradients, AreThoseOfTheDefinition) {
  if (!computes_bfloat16()) GTEST_SKIP() << instruction_set() << " has no bfloat16";
  const Case& c = GetParam();
  const Inputs in(c);
  const std::vector<float> actual = computed(c, in);
  // Sums of some hundred products around 1 in float32.
  const double tolerance = 1e-4 * std::sqrt(static_cast<double>(c.samples) * 64);
  size_t i = 0;
  for (int64_t out = 0; out < c.out_channels; ++out) {
    for (int64_t channel = 0; channel < c.in_channels; ++channel) {
      for (int64_t place = 0; place < c.kernel * c.kernel; ++place, ++i) {
        // Every value is written; one in a hundred is compared.
        ASSERT_FALSE(std::isnan(actual[i])) << i;
        if (i % 97 != 0) continue;
        ASSERT_NEAR(actual[i], expected(c, in, out, channel, place / c.kernel, place % c.kernel),
                    tolerance)
            << "out " << out << ", in " << channel << ", place " << place;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WeightGradients,
                         ::testing::Values(Case{4, 128, 144, 3, 1, 1, 5},
                                           Case{7, 128, 160, 3, 2, 1, 3},
                                           Case{7, 144, 128, 1, 2, 0, 2},
                                           Case{5, 130, 128, 3, 1, 1, 2},  // not in sixteens
                                           Case{6, 128, 128, 5, 1, 2, 1},
                                           Case{9, 16, 32, 3, 1, 1, 2}));

}  // namespace
}  // namespace outrigger::nn::cpu
