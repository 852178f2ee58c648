#include <gtest/gtest.h>

#include <cmath>

#include "common/random.h"
#include "data/codec/rows.h"
#include "data/pixels/color.h"
#include "data/pixels/draw.h"
#include "data/pixels/geometry.h"
#include "odd_images.h"

namespace outrigger::data::pixels {
namespace {

constexpr int64_t kOne = 1 << 16;

Image rgbx_picture(int height, int width) {
  const Image rgb = testing::test_picture(height, width);
  Image image(height, width, 4);
  for (size_t i = 0; i < rgb.size() / 3; ++i) {
    for (size_t c = 0; c < 3; ++c) image.pixels()[4 * i + c] = rgb.pixels()[3 * i + c];
    image.pixels()[4 * i + 3] = 255;
  }
  return image;
}

Image copy(const Image& image) {
  Image result(image.height(), image.width(), image.channels());
  std::copy(image.pixels().begin(), image.pixels().end(), result.pixels().begin());
  return result;
}

bool same_colors(const Image& a, const Image& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (i % 4 != 3 && a.pixels()[i] != b.pixels()[i]) return false;
  }
  return a.size() == b.size();
}

TEST(Color, AFactorOfOneAndNoTurnChangeNothing) {
  const Image original = rgbx_picture(30, 40);
  Image image = copy(original);
  change_brightness(image, kOne);
  change_contrast(image, kOne);
  change_saturation(image, kOne);
  change_hue(image, 0);
  EXPECT_TRUE(same_colors(image, original));
}

TEST(Color, BrightnessMultipliesAndSaturates) {
  Image image(1, 4, 1);
  const uint8_t values[] = {0, 10, 100, 200};
  std::copy_n(values, 4, image.pixels().begin());
  change_brightness(image, kOne * 3 / 2);
  EXPECT_EQ(std::vector<uint8_t>(image.pixels().begin(), image.pixels().end()),
            (std::vector<uint8_t>{0, 15, 150, 255}));
}

TEST(Color, ContrastOfZeroLeavesTheMean) {
  Image image(1, 4, 1);
  const uint8_t values[] = {0, 10, 100, 200};
  std::copy_n(values, 4, image.pixels().begin());
  change_contrast(image, 0);
  for (const uint8_t value : image.pixels()) EXPECT_NEAR(value, 77.5, 0.5);
}

TEST(Color, SaturationOfZeroLeavesLuma) {
  Image image = rgbx_picture(10, 10);
  const Image original = copy(image);
  change_saturation(image, 0);
  for (size_t i = 0; i < image.size(); i += 4) {
    const uint8_t* p = &original.pixels()[i];
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(image.pixels()[i + c], codec::luma(p[0], p[1], p[2]));
  }
}

TEST(Color, AThirdOfTheHueCircleRotatesTheChannels) {
  const Image original = rgbx_picture(20, 20);
  Image image = copy(original);
  change_hue(image, kOne / 3 + 1);
  for (size_t i = 0; i < image.size(); i += 4) {
    ASSERT_NEAR(image.pixels()[i + 1], original.pixels()[i], 1);
    ASSERT_NEAR(image.pixels()[i + 2], original.pixels()[i + 1], 1);
    ASSERT_NEAR(image.pixels()[i], original.pixels()[i + 2], 1);
  }
}

TEST(Color, TurningTheHueThereAndBackRestoresItWithinALevelOrTwo) {
  const Image original = rgbx_picture(20, 20);
  Image image = copy(original);
  change_hue(image, 9000);
  EXPECT_FALSE(same_colors(image, original));
  change_hue(image, -9000);
  for (size_t i = 0; i < image.size(); ++i) ASSERT_NEAR(image.pixels()[i], original.pixels()[i], 2);
}

TEST(Rotate, ByNothingChangesNothing) {
  const Image original = rgbx_picture(31, 44);
  Image output;
  rotate(original, turn_of(0), 0, output);
  EXPECT_TRUE(same_colors(output, original));
}

TEST(Rotate, ByARightAngleMovesEveryPixelOfASquareCounterClockwise) {
  const Image original = rgbx_picture(24, 24);
  Image output;
  rotate(original, turn_of(90 * kOne), 0, output);
  for (int y = 0; y < 24; ++y) {
    for (int x = 0; x < 24; ++x) ASSERT_EQ(output.row(23 - x)[4 * y], original.row(y)[4 * x]);
  }
}

TEST(Rotate, FillsTheCorners) {
  Image original(50, 50, 1);
  std::fill(original.pixels().begin(), original.pixels().end(), uint8_t{200});
  Image output;
  rotate(original, turn_of(45 * kOne), 9, output);
  EXPECT_EQ(output.row(0)[0], 9);
  EXPECT_EQ(output.row(25)[25], 200);
}

TEST(Rotate, KnowsSineAndCosineToTheLastBut16Bits) {
  for (int degrees = -180; degrees <= 180; ++degrees) {
    const Turn turn = turn_of(degrees * kOne);
    EXPECT_NEAR(turn.sine, 65536 * std::sin(degrees * M_PI / 180), 0.51) << degrees;
    EXPECT_NEAR(turn.cosine, 65536 * std::cos(degrees * M_PI / 180), 0.51) << degrees;
  }
}

TEST(Transpose, ExchangesRowsAndColumns) {
  for (const int channels : {1, 4}) {
    Image image(37, 21, channels);
    for (size_t i = 0; i < image.size(); ++i) image.pixels()[i] = static_cast<uint8_t>(i * 7);
    Image output;
    transpose(image, output);
    ASSERT_EQ(output.height(), 21);
    for (int y = 0; y < 37; ++y) {
      for (int x = 0; x < 21; ++x)
        ASSERT_EQ(output.row(x)[y * channels], image.row(y)[x * channels]);
    }
  }
}

TEST(Draw, RootsAreRoundedToTheNearest) {
  for (uint64_t value = 0; value < 5000; ++value) {
    EXPECT_EQ(rounded_root(value),
              static_cast<uint64_t>(std::llround(std::sqrt(static_cast<double>(value)))))
        << value;
  }
  EXPECT_EQ(rounded_root(UINT64_MAX), uint64_t{1} << 32);
  EXPECT_EQ(rounded_root((uint64_t{1} << 62)), uint64_t{1} << 31);
}

TEST(Draw, LogUniformSpreadsTheLogarithmEvenly) {
  const LogUniform ratios(to_units(0.3), to_units(3.3));
  RandomStream random(7, RandomUse::kAugmentation, 3);
  constexpr int kDraws = 20000;
  constexpr int kBins = 8;
  int counts[kBins] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double ratio = static_cast<double>(ratios.draw(random)) / kOne;
    ASSERT_GE(ratio, 0.2999);
    ASSERT_LE(ratio, 3.3001);
    const double part = std::log(ratio / 0.3) / std::log(11.0);
    ++counts[std::min(kBins - 1, static_cast<int>(part * kBins))];
  }
  // Five standard deviations of a binomial count.
  constexpr double kExpected = static_cast<double>(kDraws) / kBins;
  for (const int count : counts)
    EXPECT_NEAR(count, kExpected, 5 * std::sqrt(kExpected * (kBins - 1) / kBins));
}

TEST(Draw, BoxesLieInsideAndHaveTheAreaAskedFor) {
  const BoxDistribution boxes{to_units(0.2), to_units(0.5), {to_units(0.5), to_units(2)}};
  RandomStream random(7, RandomUse::kAugmentation, 4);
  double mean_area = 0;
  for (int i = 0; i < 5000; ++i) {
    Box box;
    ASSERT_TRUE(draw_box(random, boxes, 300, 200, box));
    ASSERT_GE(box.x, 0);
    ASSERT_GE(box.y, 0);
    ASSERT_LE(box.x + box.width, 300);
    ASSERT_LE(box.y + box.height, 200);
    mean_area += box.width * box.height / 60000.0 / 5000;
  }
  EXPECT_GT(mean_area, 0.30);
  EXPECT_LT(mean_area, 0.37);
}

TEST(Draw, TheMiddleBoxObeysTheRatios) {
  const Box wide = middle_box(400, 100, to_units(0.75), to_units(4.0 / 3));
  EXPECT_EQ(wide.width, 133);
  EXPECT_EQ(wide.height, 100);
  EXPECT_EQ(wide.x, 133);
  const Box tall = middle_box(90, 400, to_units(0.75), to_units(4.0 / 3));
  EXPECT_EQ(tall.width, 90);
  EXPECT_EQ(tall.height, 120);
}

}  // namespace
}  // namespace outrigger::data::pixels
