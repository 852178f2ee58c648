#include "data/pixels/resample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/random.h"
#include "data/codec/rows.h"

namespace outrigger::data::pixels {
namespace {

Image noise(int height, int width, int channels) {
  Image image(height, width, channels);
  RandomStream random(1, RandomUse::kSyntheticData, 1);
  for (uint8_t& value : image.pixels()) value = static_cast<uint8_t>(random.next_u32());
  return image;
}

AxisMap map_of(double begin, double size, int outputs, int pixels) {
  return {static_cast<Fixed>(begin * kFixedOne),
          static_cast<Fixed>(size * kFixedOne),
          outputs,
          0,
          pixels,
          false};
}

Image resample(const Image& source, const AxisMap& across, const AxisMap& down) {
  Resampler resampler;
  Image output;
  resampler.run({source, 0, 0}, across, down, output);
  return output;
}

using Weights = std::vector<std::vector<double>>;

/// The definition in real numbers: a triangle filter whose half width is one output pixel, or one
/// input pixel if that is more. {output, input}
Weights exact_weights(const AxisMap& map) {
  const double begin = static_cast<double>(map.begin) / kFixedOne;
  const double size = static_cast<double>(map.size) / kFixedOne;
  const double support = std::max(1.0, size / map.outputs);
  Weights result;
  for (int i = 0; i < map.outputs; ++i) {
    const double centre = begin + size * (i + 0.5) / map.outputs;
    std::vector<double> row(static_cast<size_t>(map.last), 0);
    double sum = 0;
    for (int k = map.first; k < map.last; ++k) {
      sum += row[static_cast<size_t>(k)] = std::max(0.0, 1 - std::fabs(k + 0.5 - centre) / support);
    }
    for (double& w : row) w /= sum;
    result.push_back(row);
  }
  return result;
}

double exact(const Image& source, const std::vector<double>& across,
             const std::vector<double>& down, int channel) {
  double value = 0;
  for (size_t j = 0; j < down.size(); ++j) {
    const uint8_t* row = source.row(static_cast<int>(j)) + channel;
    for (size_t i = 0; down[j] > 0 && i < across.size(); ++i) {
      value += down[j] * across[i] * row[i * static_cast<size_t>(source.channels())];
    }
  }
  return value;
}

struct Case {
  AxisMap across;
  AxisMap down;
};

std::vector<Case> cases(int width, int height) {
  return {
      {map_of(0, width, 20, width), map_of(0, height, 20, height)},             // shrinks
      {map_of(0, width, 2 * width + 1, width), map_of(0, height, 90, height)},  // enlarges
      {map_of(3.25, 21.5, 16, width), map_of(1.75, 30, 7, height)},  // a part, off the grid
      {map_of(0, width, 1, width), map_of(0, height, 1, height)},    // to one pixel
      {map_of(-4, width + 8, 10, width), map_of(-2, height + 4, 9, height)},  // more than there is
  };
}

TEST(Resample, AgreesWithTheExactFilterToHalfALevelAndALittle) {
  for (const int channels : {1, 4}) {
    const Image source = noise(37, 53, channels);
    for (const Case& c : cases(53, 37)) {
      const Image output = resample(source, c.across, c.down);
      const Weights across = exact_weights(c.across);
      const Weights down = exact_weights(c.down);
      for (int y = 0; y < output.height(); ++y) {
        for (int x = 0; x < output.width(); ++x) {
          for (int k = 0; k < std::min(channels, 3); ++k) {
            // Half a level for rounding the result; the rest is what 15-bit weights and 7-bit sums
            // lose.
            ASSERT_NEAR(
                output.row(y)[x * channels + k],
                exact(source, across[static_cast<size_t>(x)], down[static_cast<size_t>(y)], k),
                0.5 + 0.25);
          }
        }
      }
    }
  }
}

TEST(Resample, GivesTheSameBitsWithEveryInstructionSet) {
  for (const int channels : {1, 4}) {
    const Image source = noise(61, 97, channels);
    for (const Case& c : cases(97, 61)) {
      std::vector<std::vector<uint8_t>> results;
      for (const std::string& name : instruction_sets()) {
        use_instruction_set(name);
        const Image output = resample(source, c.across, c.down);
        results.emplace_back(output.pixels().begin(), output.pixels().end());
        EXPECT_EQ(results.back(), results.front()) << name;
      }
      use_instruction_set("");
    }
  }
  EXPECT_GE(instruction_sets().size(), 1U);
}

TEST(Resample, KeepsAnImageOfTheSameSizeAsItIs) {
  for (const int channels : {1, 4}) {
    const Image source = noise(40, 33, channels);
    const Image output = resample(source, map_of(0, 33, 33, 33), map_of(0, 40, 40, 40));
    EXPECT_TRUE(
        std::equal(source.pixels().begin(), source.pixels().end(), output.pixels().begin()));
  }
}

TEST(Resample, KeepsAFlatImageFlatAtAnyScale) {
  for (const uint8_t level : {0, 1, 77, 128, 254, 255}) {
    Image source(200, 300, 4);
    std::fill(source.pixels().begin(), source.pixels().end(), level);
    for (const int size : {3, 50, 199, 420}) {
      const Image output = resample(source, map_of(0, 300, size, 300), map_of(0, 200, size, 200));
      for (const uint8_t value : output.pixels())
        ASSERT_NEAR(value, level, size == 3 ? 1 : 0) << int{level} << " to " << size;
    }
  }
}

TEST(Resample, MirrorsByReversingTheOutputs) {
  const Image source = noise(20, 31, 4);
  AxisMap across = map_of(2, 25, 12, 31);
  const AxisMap down = map_of(0, 20, 9, 20);
  const Image plain = resample(source, across, down);
  across.mirrored = true;
  const Image mirrored = resample(source, across, down);
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 12 * 4; ++x)
      ASSERT_EQ(mirrored.row(y)[x], plain.row(y)[(11 - x / 4) * 4 + x % 4]);
  }
}

TEST(Resample, LooksAtNothingOutsideTheBounds) {
  Image source = noise(30, 30, 4);
  AxisMap across = map_of(10, 10, 5, 30);
  across.first = 10;
  across.last = 20;
  const AxisMap down = across;
  const Image before = resample(source, across, down);
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 30; ++x) {
      const bool inside = x >= 10 && x < 20 && y >= 10 && y < 20;
      if (!inside) std::fill_n(source.row(y) + 4 * x, 4, uint8_t{255});
    }
  }
  const Image after = resample(source, across, down);
  EXPECT_TRUE(std::equal(before.pixels().begin(), before.pixels().end(), after.pixels().begin()));
}

TEST(Resample, SurvivesAnImageOfExtremeShape) {
  const Image source = noise(1, 200000, 1);
  const Image output = resample(source, map_of(0, 200000, 112, 200000), map_of(0, 1, 112, 1));
  EXPECT_EQ(output.size(), 112U * 112U);
}

}  // namespace
}  // namespace outrigger::data::pixels
