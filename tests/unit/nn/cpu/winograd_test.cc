#include "nn/cpu/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/random.h"
#include "imposed_instruction_set.h"

/// Convolutions by Winograd against plain loops in double, and their bits against themselves.
namespace outrigger::nn::cpu {
namespace {

using Floats = std::vector<float>;

struct Case {
  int64_t height, width, in, out, samples;  // channels in panels

  ConvolutionShape shape() const {
    const int64_t panel = kernels().winograd.panel;
    return {height, width, in * panel, height, width, out * panel, 3, 1, 1, 1, false, false};
  }
};

Floats draw(int64_t count, uint32_t field) {
  RandomStream random(1, RandomUse::kSyntheticData, 0, field);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

struct Tensors {
  explicit Tensors(const Case& c)
      : s(c.shape()),
        samples(c.samples),
        x(draw(places() * s.in_channels, 1)),
        dy(draw(places() * s.out_channels, 2)),
        weights(draw(9 * s.in_channels * s.out_channels, 3)),
        bias(draw(s.out_channels, 4)) {}
  int64_t places() const { return samples * s.in_height * s.in_width; }

  const ConvolutionShape s;
  const int64_t samples;
  const Floats x, dy, weights /* {out, in, 3, 3} */, bias;
};

Floats pass(const Tensors& t, WinogradConvolution::Pass which, const Floats& from,
            const float* bias, int64_t samples) {
  const WinogradConvolution convolution(t.s, which);
  std::vector<std::byte> packed(convolution.weight_bytes());
  std::vector<std::byte> scratchpad(convolution.scratchpad_bytes());
  convolution.load(t.weights.data(), packed.data());
  const bool forward = which == WinogradConvolution::Pass::kForward;
  const int64_t ins = forward ? t.s.in_channels : t.s.out_channels;
  const int64_t outs = forward ? t.s.out_channels : t.s.in_channels;
  const int64_t map = t.s.in_height * t.s.in_width;
  Floats to(static_cast<size_t>(t.places() * outs), NAN);
  for (int64_t first = 0; first < t.samples; first += samples) {
    convolution.execute(scratchpad.data(), from.data() + first * map * ins, packed.data(), bias,
                        to.data() + first * map * outs, std::min(samples, t.samples - first));
  }
  return to;
}

Floats weight_gradient(const Tensors& t) {
  const WinogradWeightGradient gradient(t.s, t.samples);
  std::vector<std::byte> scratchpad(gradient.scratchpad_bytes());
  Floats taps(t.weights.size(), NAN);
  gradient.execute(scratchpad.data(), t.x.data(), t.dy.data(), taps.data());
  return taps;
}

// visit(place of the input, place of the output, tap) for all pairs that a tap connects.
template <typename Visit>
void for_each_pair(const Tensors& t, const Visit& visit) {
  for (int64_t out = 0; out < t.places(); ++out) {
    const int64_t y = out / t.s.in_width % t.s.in_height, x = out % t.s.in_width;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t row = y + tap / 3 - 1, column = x + tap % 3 - 1;
      if (row < 0 || column < 0 || row >= t.s.in_height || column >= t.s.in_width) continue;
      visit(out + (row - y) * t.s.in_width + column - x, out, tap);
    }
  }
}

// One in a few of the values, by the definition: every place, a channel or two.
void expect_close(const Floats& actual, const std::vector<double>& expected, int64_t terms,
                  const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  // Terms are products of two numbers around 1, added up one after the other: errors of an eighth
  // of this are common, oneDNN's of a quarter.
  const double tolerance =
      48 * std::sqrt(static_cast<double>(terms)) * std::numeric_limits<float>::epsilon();
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_FALSE(std::isnan(actual[i])) << what << " " << i << " was not written";
    } else {
      ASSERT_NEAR(actual[i], expected[i], tolerance) << what << " " << i;
    }
  }
}

class Winograd : public ::testing::TestWithParam<Case> {
 protected:
  const Tensors t_{GetParam()};
  const int64_t ins_ = t_.s.in_channels, outs_ = t_.s.out_channels;
  double weight(int64_t out, int64_t in, int64_t tap) const {
    return double{t_.weights[static_cast<size_t>((out * ins_ + in) * 9 + tap)]};
  }
  // NaN: not compared, but written.
  std::vector<double> unknown(int64_t count) const {
    return std::vector<double>(static_cast<size_t>(count), NAN);
  }
};

TEST_P(Winograd, ForwardIsTheDefinition) {
  auto expected = unknown(t_.places() * outs_);
  for (const int64_t channel : {int64_t{0}, outs_ - 1}) {
    for (int64_t place = 0; place < t_.places(); ++place)
      expected[static_cast<size_t>(place * outs_ + channel)] =
          double{t_.bias[static_cast<size_t>(channel)]};
    for_each_pair(t_, [&](int64_t from, int64_t to, int64_t tap) {
      for (int64_t in = 0; in < ins_; ++in)
        expected[static_cast<size_t>(to * outs_ + channel)] +=
            double{t_.x[static_cast<size_t>(from * ins_ + in)]} * weight(channel, in, tap);
    });
  }
  expect_close(pass(t_, WinogradConvolution::Pass::kForward, t_.x, t_.bias.data(), t_.samples),
               expected, 9 * ins_, "y");
}

TEST_P(Winograd, BackwardDataIsTheDefinition) {
  auto expected = unknown(t_.places() * ins_);
  for (const int64_t channel : {int64_t{1}, ins_ - 1}) {
    for (int64_t place = 0; place < t_.places(); ++place)
      expected[static_cast<size_t>(place * ins_ + channel)] = 0;
    for_each_pair(t_, [&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t out = 0; out < outs_; ++out)
        expected[static_cast<size_t>(to * ins_ + channel)] +=
            double{t_.dy[static_cast<size_t>(from * outs_ + out)]} * weight(out, channel, tap);
    });
  }
  expect_close(pass(t_, WinogradConvolution::Pass::kBackwardData, t_.dy, nullptr, t_.samples),
               expected, 9 * outs_, "dx");
}

TEST_P(Winograd, WeightGradientIsTheDefinition) {
  auto expected = unknown(9 * ins_ * outs_);
  for (int64_t i = 0; i < ins_ * outs_; i += 37) {
    const int64_t in = i / outs_, out = i % outs_;
    for (int64_t tap = 0; tap < 9; ++tap) expected[static_cast<size_t>(tap * ins_ * outs_ + i)] = 0;
    for_each_pair(t_, [&](int64_t from, int64_t to, int64_t tap) {
      expected[static_cast<size_t>(tap * ins_ * outs_ + i)] +=
          double{t_.x[static_cast<size_t>(from * ins_ + in)]} *
          double{t_.dy[static_cast<size_t>(to * outs_ + out)]};
    });
  }
  expect_close(weight_gradient(t_), expected, t_.places(), "dw");
}

TEST_P(Winograd, BitsDoNotDependOnHowManySamplesAreGivenAtATime) {
  for (const auto which :
       {WinogradConvolution::Pass::kForward, WinogradConvolution::Pass::kBackwardData}) {
    const bool forward = which == WinogradConvolution::Pass::kForward;
    const Floats& from = forward ? t_.x : t_.dy;
    const Floats all = pass(t_, which, from, nullptr, t_.samples);
    EXPECT_EQ(pass(t_, which, from, nullptr, 1), all);
    EXPECT_EQ(pass(t_, which, from, nullptr, 3), all);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd,
    ::testing::Values(Case{8, 8, 1, 1, 4},
                      Case{7, 7, 2, 1, 5},    // a row and a column too few for the last tiles
                      Case{1, 1, 1, 2, 7},    // a tile that is mostly padding
                      Case{1, 6, 1, 1, 1},    //
                      Case{5, 2, 3, 2, 2},    //
                      Case{56, 56, 1, 2, 2},  // more tiles than planes hold at a time
                      Case{4, 4, 4, 8, 3}),   //
    [](const auto& tested) {
      const Case& c = tested.param;
      return std::to_string(c.height) + "x" + std::to_string(c.width) + "_" + std::to_string(c.in) +
             "_to_" + std::to_string(c.out) + "_of_" + std::to_string(c.samples);
    });

TEST(WinogradShapes, AreThoseThatItSparesProducts) {
  const auto is = [](int64_t height, int64_t width) {
    return is_winograd(Case{height, width, 1, 1, 1}.shape());
  };
  EXPECT_FALSE(is(1, 1)) << "16 products instead of one";
  EXPECT_FALSE(is(2, 2)) << "16 instead of 16";
  EXPECT_FALSE(is(3, 3)) << "64 instead of 49";
  EXPECT_TRUE(is(4, 4));
  EXPECT_TRUE(is(7, 7));
  EXPECT_FALSE(is(1, 50));
}

TEST(WinogradShapes, AreThreeByThreeWithoutStrideOrGroupsInFloat32) {
  const ConvolutionShape plain = Case{8, 8, 2, 1, 1}.shape();
  EXPECT_TRUE(is_winograd(plain));
  const auto but = [&](auto member, auto value) {
    ConvolutionShape shape = plain;
    shape.*member = value;
    return is_winograd(shape);
  };
  EXPECT_FALSE(but(&ConvolutionShape::kernel, 5));
  EXPECT_FALSE(but(&ConvolutionShape::stride, 2));
  EXPECT_FALSE(but(&ConvolutionShape::padding, 0));
  EXPECT_FALSE(but(&ConvolutionShape::groups, 2));
  EXPECT_FALSE(but(&ConvolutionShape::bfloat16, true));
  EXPECT_FALSE(but(&ConvolutionShape::in_channels, 3));
  EXPECT_FALSE(but(&ConvolutionShape::out_channels, kernels().winograd.panel + 4));
}

}  // namespace
}  // namespace outrigger::nn::cpu
