#include "nn/cpu/own_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/random.h"
#include "imposed_instruction_set.h"
#include "nn/cpu/grouped_convolution.h"
#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/narrow_convolution.h"
#include "nn/cpu/winograd.h"

/// Our own convolutions against plain loops in double, and their bits against themselves.
namespace outrigger::nn::cpu {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kHalfPanel = -1;

struct Case {
  int64_t height, width, in, out, kernel, stride, padding, samples;
  bool in_panels = false;  // what `in` and `out` count; how wide one is, is known in a test only
  int64_t group = 0;       // channels of one, or kHalfPanel; 0: one group
  bool bfloat16 = false;

  ConvolutionShape shape() const {
    const auto places = [&](int64_t size) { return (size + 2 * padding - kernel) / stride + 1; };
    const int64_t unit = in_panels ? kernels().panel : 1;
    const int64_t of_group = group == kHalfPanel ? kernels().panel / 2 : group;
    return {.in_height = height,
            .in_width = width,
            .in_channels = in * unit,
            .out_height = places(height),
            .out_width = places(width),
            .out_channels = out * unit,
            .kernel = kernel,
            .stride = stride,
            .padding = padding,
            .groups = of_group == 0 ? 1 : out * unit / of_group,
            .bias = false,
            .bfloat16 = bfloat16};
  }
};

using Halves = std::vector<uint16_t>;

Halves halves_of(const Floats& values) {
  Halves halves(values.size());
  kernels().bfloat16.from_float(values.data(), halves.data(), std::ssize(values));
  return halves;
}

Floats floats_of(const Halves& halves) {
  Floats values(halves.size());
  kernels().bfloat16.to_float(halves.data(), values.data(), std::ssize(halves));
  return values;
}

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
        x(drawn_map(ins(), 1)),
        dy(drawn_map(outs(), 2)),
        weights(draw(taps() * group_ins() * s.out_channels, 3)),
        bias(draw(s.out_channels, 4)) {}
  Floats drawn_map(int64_t count, uint32_t field) const {
    const Floats values = draw(count, field);
    return s.bfloat16 ? floats_of(halves_of(values)) : values;
  }
  int64_t taps() const { return s.kernel * s.kernel; }
  int64_t group_ins() const { return s.in_channels / s.groups; }
  int64_t in_places() const { return samples * s.in_height * s.in_width; }
  int64_t out_places() const { return samples * s.out_height * s.out_width; }
  int64_t ins() const { return in_places() * s.in_channels; }
  int64_t outs() const { return out_places() * s.out_channels; }

  const ConvolutionShape s;
  const int64_t samples;
  const Floats x, dy, weights /* {out, in / groups, kernel, kernel} */, bias;
};

Floats pass(const Tensors& t, ConvolutionPass which, const float* bias, int64_t at_a_time) {
  const auto convolution = make_own_convolution(t.s, which);
  std::vector<std::byte> packed(convolution->weight_bytes());
  std::vector<std::byte> scratchpad(convolution->scratchpad_bytes());
  convolution->load(t.weights.data(), packed.data());
  const bool forward = which == ConvolutionPass::kForward;
  const Floats& from = forward ? t.x : t.dy;
  const int64_t ins = (forward ? t.ins() : t.outs()) / t.samples;
  const int64_t outs = (forward ? t.outs() : t.ins()) / t.samples;
  const auto in_turns = [&](const auto* input, auto* output) {
    for (int64_t first = 0; first < t.samples; first += at_a_time)
      convolution->execute(scratchpad.data(), input + first * ins, packed.data(), bias,
                           output + first * outs, std::min(at_a_time, t.samples - first));
  };
  Floats to(static_cast<size_t>(t.samples * outs), NAN);
  if (!t.s.bfloat16) {
    in_turns(from.data(), to.data());
    return to;
  }
  Halves rounded = halves_of(to);
  in_turns(halves_of(from).data(), rounded.data());
  return floats_of(rounded);
}

Floats weight_gradient(const Tensors& t) {
  const auto gradient = make_own_weight_gradient(t.s, t.samples);
  std::vector<std::byte> scratchpad(gradient->scratchpad_bytes());
  Floats taps(t.weights.size(), NAN);
  if (t.s.bfloat16) {
    gradient->execute(scratchpad.data(), halves_of(t.x).data(), halves_of(t.dy).data(),
                      taps.data());
  } else {
    gradient->execute(scratchpad.data(), t.x.data(), t.dy.data(), taps.data());
  }
  return taps;
}

// visit(place of the input, place of the output, tap) for all pairs that a tap connects.
template <typename Visit>
void for_each_pair(const Tensors& t, const Visit& visit) {
  const ConvolutionShape& s = t.s;
  for (int64_t out = 0; out < t.out_places(); ++out) {
    const int64_t x = out % s.out_width, y = out / s.out_width % s.out_height;
    const int64_t map = out / s.out_width / s.out_height * s.in_height * s.in_width;
    for (int64_t tap = 0; tap < t.taps(); ++tap) {
      const int64_t row = y * s.stride + tap / s.kernel - s.padding;
      const int64_t column = x * s.stride + tap % s.kernel - s.padding;
      if (row < 0 || column < 0 || row >= s.in_height || column >= s.in_width) continue;
      visit(map + row * s.in_width + column, out, tap);
    }
  }
}

// One in a few of the values, by the definition: every place, a channel or two.
// `rounding`: of what is written.
void expect_close(const Floats& actual, const std::vector<double>& expected, int64_t terms,
                  const char* what, double rounding = 0) {
  ASSERT_EQ(actual.size(), expected.size());
  // Terms are products of two numbers around 1, added up one after the other: errors of an eighth
  // of this are common, oneDNN's of a quarter.
  const double tolerance =
      48 * std::sqrt(static_cast<double>(terms)) * std::numeric_limits<float>::epsilon();
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_FALSE(std::isnan(actual[i])) << what << " " << i << " was not written";
    } else {
      ASSERT_NEAR(actual[i], expected[i], tolerance + rounding * std::abs(expected[i]))
          << what << " " << i;
    }
  }
}

class OwnConvolutions : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().group == kHalfPanel && is_grouped(t_.s))
      GTEST_SKIP() << "half a panel is a narrow group here";
  }
  const Tensors t_{GetParam()};
  const int64_t ins_ = t_.s.in_channels, outs_ = t_.s.out_channels;
  const double rounding_ = t_.s.bfloat16 ? 1.0 / 256 : 0;
  double weight(int64_t out, int64_t in, int64_t tap) const {
    const int64_t group_outs = outs_ / t_.s.groups, width = t_.group_ins();
    if (in / width != out / group_outs) return 0;
    return double{t_.weights[static_cast<size_t>((out * width + in % width) * t_.taps() + tap)]};
  }
  // NaN: not compared, but written.
  std::vector<double> unknown(int64_t count) const {
    return std::vector<double>(static_cast<size_t>(count), NAN);
  }
};

TEST_P(OwnConvolutions, ForwardIsTheDefinition) {
  auto expected = unknown(t_.outs());
  for (const int64_t channel : std::set<int64_t>{0, outs_ - 1}) {
    for (int64_t place = 0; place < t_.out_places(); ++place)
      expected[static_cast<size_t>(place * outs_ + channel)] =
          double{t_.bias[static_cast<size_t>(channel)]};
    for_each_pair(t_, [&](int64_t from, int64_t to, int64_t tap) {
      for (int64_t in = 0; in < ins_; ++in)
        expected[static_cast<size_t>(to * outs_ + channel)] +=
            double{t_.x[static_cast<size_t>(from * ins_ + in)]} * weight(channel, in, tap);
    });
  }
  expect_close(pass(t_, ConvolutionPass::kForward, t_.bias.data(), t_.samples), expected,
               t_.taps() * ins_, "y", rounding_);
}

TEST_P(OwnConvolutions, BackwardDataIsTheDefinition) {
  auto expected = unknown(t_.ins());
  for (const int64_t channel : std::set<int64_t>{0, ins_ - 1}) {
    for (int64_t place = 0; place < t_.in_places(); ++place)
      expected[static_cast<size_t>(place * ins_ + channel)] = 0;
    for_each_pair(t_, [&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t out = 0; out < outs_; ++out)
        expected[static_cast<size_t>(to * ins_ + channel)] +=
            double{t_.dy[static_cast<size_t>(from * outs_ + out)]} * weight(out, channel, tap);
    });
  }
  expect_close(pass(t_, ConvolutionPass::kBackwardData, nullptr, t_.samples), expected,
               t_.taps() * outs_, "dx", rounding_);
}

TEST_P(OwnConvolutions, WeightGradientIsTheDefinition) {
  const int64_t pairs = t_.group_ins() * outs_, group_outs = outs_ / t_.s.groups;
  auto expected = unknown(t_.taps() * pairs);
  for (int64_t i = 0; i<pairs; i += pairs> 100 ? 37 : 1) {
    const int64_t out = i % outs_, in = out / group_outs * t_.group_ins() + i / outs_;
    for (int64_t tap = 0; tap < t_.taps(); ++tap)
      expected[static_cast<size_t>(tap * pairs + i)] = 0;
    for_each_pair(t_, [&](int64_t from, int64_t to, int64_t tap) {
      expected[static_cast<size_t>(tap * pairs + i)] +=
          double{t_.x[static_cast<size_t>(from * ins_ + in)]} *
          double{t_.dy[static_cast<size_t>(to * outs_ + out)]};
    });
  }
  expect_close(weight_gradient(t_), expected, t_.out_places(), "dw");
}

TEST_P(OwnConvolutions, BitsDoNotDependOnHowManySamplesAreGivenAtATime) {
  for (const auto which : {ConvolutionPass::kForward, ConvolutionPass::kBackwardData}) {
    const Floats all = pass(t_, which, nullptr, t_.samples);
    EXPECT_EQ(pass(t_, which, nullptr, 1), all);
    EXPECT_EQ(pass(t_, which, nullptr, 3), all);
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& tested) {
  const Case& c = tested.param;
  std::string name = std::to_string(c.height) + "x" + std::to_string(c.width);
  for (const int64_t number : {c.in, c.out, c.kernel, c.stride, c.padding, c.samples, c.group})
    name += "_" + (number == kHalfPanel ? "half" : std::to_string(number));
  return name + (c.bfloat16 ? "_bfloat16" : "");
}

Case winograd_case(int64_t height, int64_t width, int64_t in, int64_t out, int64_t samples,
                   int64_t group = 0) {
  return {height, width, in, out, 3, 1, 1, samples, true, group};
}

INSTANTIATE_TEST_SUITE_P(
    Winograd, OwnConvolutions,
    ::testing::Values(winograd_case(8, 8, 1, 1, 4),
                      winograd_case(7, 7, 2, 1,
                                    5),  // a row and a column too few for the last tiles
                      winograd_case(4, 6, 1, 2, 7),    //
                      winograd_case(5, 4, 3, 2, 2),    //
                      winograd_case(56, 56, 1, 2, 2),  // more tiles than planes hold at a time
                      winograd_case(4, 4, 4, 8, 3),
                      winograd_case(9, 6, 3, 3, 5, kHalfPanel),  // groups
                      winograd_case(6, 6, 1, 1, 2, kHalfPanel),  //
                      winograd_case(30, 30, 2, 2, 4, kHalfPanel)),
    name_of);

Case grouped_case(int64_t height, int64_t width, int64_t panels, int64_t samples, int64_t group,
                  bool bfloat16, int64_t kernel = 3, int64_t padding = 1) {
  return {height, width, panels, panels, kernel, 1, padding, samples, true, group, bfloat16};
}

std::vector<Case> grouped_cases() {
  std::vector<Case> cases;
  for (const int64_t group : {1, 2, 4}) {
    for (const bool bfloat16 : {false, true}) {
      cases.push_back(grouped_case(5, 5, 2, 4, group, bfloat16, 5, 0));  // one output
      if (group == 1 && !bfloat16) continue;
      cases.push_back(grouped_case(7, 9, 2, 4, group, bfloat16));
      cases.push_back(grouped_case(3, 17, 1, 5, group, bfloat16));        // 8, 8 and 1 outputs
      cases.push_back(grouped_case(1, 1, 1, 3, group, bfloat16));         // mostly padding
      cases.push_back(grouped_case(6, 8, 1, 4, group, bfloat16, 2, 0));   // other kernels
      cases.push_back(grouped_case(9, 6, 2, 3, group, bfloat16, 5, 2));   //
      cases.push_back(grouped_case(8, 11, 1, 3, group, bfloat16, 7, 1));  //
      cases.push_back(grouped_case(2, 3, 1, 3, group, bfloat16, 7, 6));   // more padding than map
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Grouped, OwnConvolutions, ::testing::ValuesIn(grouped_cases()), name_of);

INSTANTIATE_TEST_SUITE_P(Narrow, OwnConvolutions,
                         ::testing::Values(Case{28, 28, 1, 6, 5, 1, 0, 4},   // lenet5's
                                           Case{12, 12, 6, 16, 5, 1, 0, 5},  //
                                           Case{30, 26, 3, 64, 7, 2, 3, 2},  // resnet18's first
                                           Case{17, 13, 3, 24, 3, 1, 1, 4},  // part of a panel
                                           Case{16, 16, 3, 33, 3, 2, 1, 4},  // one more than two
                                           Case{2, 9, 8, 1, 2, 1, 0, 5},     // one output
                                           Case{5, 5, 2, 7, 5, 1, 2, 3},     //
                                           Case{1, 1, 1, 1, 3, 1, 1, 4},     // mostly padding
                                           Case{9, 9, 4, 8, 2, 3, 0, 2},  // places that none sees
                                           Case{112, 112, 3, 16, 3, 1, 1, 1}),  // rows in turns
                         name_of);

TEST(WinogradShapes, AreThoseThatItSparesProducts) {
  const auto is = [](int64_t height, int64_t width) {
    return is_winograd(winograd_case(height, width, 1, 1, 1).shape());
  };
  EXPECT_FALSE(is(1, 1)) << "16 products instead of one";
  EXPECT_FALSE(is(2, 2)) << "16 instead of 16";
  EXPECT_FALSE(is(3, 3)) << "64 instead of 49";
  EXPECT_TRUE(is(4, 4));
  EXPECT_TRUE(is(7, 7));
  EXPECT_FALSE(is(1, 50));
}

TEST(WinogradShapes, AreThreeByThreeWithoutStrideOrGroupsInFloat32) {
  const ConvolutionShape plain = winograd_case(8, 8, 2, 1, 1).shape();
  EXPECT_TRUE(is_winograd(plain));
  const auto but = [&](auto member, auto value) {
    ConvolutionShape shape = plain;
    shape.*member = value;
    return is_winograd(shape);
  };
  EXPECT_FALSE(but(&ConvolutionShape::kernel, 5));
  EXPECT_FALSE(but(&ConvolutionShape::stride, 2));
  EXPECT_FALSE(but(&ConvolutionShape::padding, 0));
  EXPECT_FALSE(but(&ConvolutionShape::groups, 2)) << "two inputs for an output";
  EXPECT_FALSE(but(&ConvolutionShape::bfloat16, true));
  EXPECT_FALSE(but(&ConvolutionShape::in_channels, 3));
  EXPECT_FALSE(but(&ConvolutionShape::out_channels, kernels().panel + 4));
}

TEST(WinogradShapes, MayHaveGroupsThatFillAPanelTogether) {
  const auto is = [](int64_t group) {
    return is_winograd(winograd_case(8, 8, 2, 2, 1, group).shape());
  };
  EXPECT_FALSE(is(1)) << "oneDNN's depthwise ones are fast";
  EXPECT_FALSE(is(kernels().panel));
  EXPECT_TRUE(is(kernels().panel / 2));
}

TEST(GroupedShapes, AreOfFewChannelsAGroupWithoutStride) {
  const ConvolutionShape plain = grouped_case(8, 8, 2, 1, 2, true).shape();
  EXPECT_TRUE(is_grouped(plain));
  EXPECT_TRUE(is_grouped(grouped_case(8, 8, 2, 1, 4, false).shape()));
  EXPECT_TRUE(is_grouped(grouped_case(8, 8, 2, 1, 1, true).shape()));
  EXPECT_FALSE(is_grouped(grouped_case(8, 8, 2, 1, 1, false).shape())) << "oneDNN's are faster";
  EXPECT_TRUE(is_grouped(grouped_case(5, 5, 2, 1, 1, false, 5, 0).shape())) << "but not these";
  EXPECT_FALSE(is_grouped(grouped_case(8, 8, 2, 1, 8, true).shape()));
  const auto but = [&](auto member, auto value) {
    ConvolutionShape shape = plain;
    shape.*member = value;
    return is_grouped(shape);
  };
  EXPECT_FALSE(but(&ConvolutionShape::kernel, 1));
  EXPECT_FALSE(but(&ConvolutionShape::kernel, 9));
  EXPECT_FALSE(but(&ConvolutionShape::stride, 2));
  EXPECT_FALSE(but(&ConvolutionShape::padding, 3)) << "places that see padding alone";
  EXPECT_FALSE(but(&ConvolutionShape::out_channels, 2 * plain.out_channels));
  EXPECT_FALSE(is_grouped(winograd_case(8, 8, 2, 2, 1).shape())) << "one group";
}

TEST(NarrowShapes, AreOfFewInputChannelsInFloat32) {
  const ConvolutionShape plain = Case{28, 28, 3, 64, 7, 2, 3, 1}.shape();
  EXPECT_TRUE(is_narrow(plain));
  const auto but = [&](auto member, auto value) {
    ConvolutionShape shape = plain;
    shape.*member = value;
    return is_narrow(shape);
  };
  EXPECT_FALSE(but(&ConvolutionShape::kernel, 1));
  EXPECT_FALSE(but(&ConvolutionShape::groups, 3));
  EXPECT_FALSE(but(&ConvolutionShape::bfloat16, true));
  EXPECT_FALSE(but(&ConvolutionShape::in_channels, 9));
}

}  // namespace
}  // namespace outrigger::nn::cpu
