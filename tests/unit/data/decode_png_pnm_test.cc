#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/decode.h"
#include "odd_images.h"

namespace outrigger::data {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Image grey_as_rgb(const Image& grey) {
  Image rgb(grey.height(), grey.width(), 3);
  for (size_t i = 0; i < rgb.size(); ++i) rgb.pixels()[i] = grey.pixels()[i / 3];
  return rgb;
}

TEST(DecodePng, KeepsColorsExactlyAndDropsTransparency) {
  const Image picture = test_picture(21, 37);
  for (const int bits : {8, 16}) {
    for (const bool interlaced : {false, true}) {
      for (const PngColors colors : {PngColors::kRgb, PngColors::kRgba}) {
        const Bytes png =
            make_png(picture, {.colors = colors, .bits = bits, .interlaced = interlaced});
        EXPECT_EQ(mean_difference(decode(png), picture), 0)
            << bits << interlaced << static_cast<int>(colors);
        EXPECT_EQ(mean_difference(decode(png, 1), to_grey(picture)), 0);
      }
      for (const PngColors colors : {PngColors::kGrey, PngColors::kGreyAlpha}) {
        const Bytes png =
            make_png(picture, {.colors = colors, .bits = bits, .interlaced = interlaced});
        EXPECT_EQ(mean_difference(decode(png, 1), to_grey(picture)), 0)
            << bits << interlaced << static_cast<int>(colors);
        EXPECT_EQ(mean_difference(decode(png), grey_as_rgb(to_grey(picture))), 0);
      }
    }
  }
}

TEST(DecodePng, ExpandsFewBitsAndPalettes) {
  const Image picture = test_picture(19, 23);
  for (const int bits : {1, 2, 4}) {
    const Bytes png = make_png(picture, {.colors = PngColors::kGrey, .bits = bits});
    const Image grey = to_grey(picture);
    Image expected(grey.height(), grey.width(), 1);
    const int most = (1 << bits) - 1;
    for (size_t i = 0; i < grey.size(); ++i) {
      expected.pixels()[i] = static_cast<uint8_t>((grey.pixels()[i] >> (8 - bits)) * 255 / most);
    }
    EXPECT_EQ(mean_difference(decode(png, 1), expected), 0) << bits;
  }
  for (const bool transparent : {false, true}) {
    Image expected = test_picture(19, 23);
    for (size_t i = 0; i < expected.size(); ++i) expected.pixels()[i] &= i % 3 == 2 ? 0xC0 : 0xE0;
    const Bytes png =
        make_png(picture, {.colors = PngColors::kPalette, .transparent_color = transparent});
    EXPECT_EQ(mean_difference(decode(png), expected), 0) << transparent;
  }
}

TEST(DecodePng, IgnoresATransparentColor) {
  const Image picture = test_picture(30, 30);
  EXPECT_EQ(mean_difference(decode(make_png(picture, {.transparent_color = true})), picture), 0);
}

TEST(DecodePng, CallsATruncatedOrDamagedFileBroken) {
  const Bytes png = make_png(test_picture(50, 50));
  for (const size_t size : {size_t{8}, size_t{20}, png.size() / 2, png.size() - 14}) {
    EXPECT_THROW(decode(Bytes(png.begin(), png.begin() + static_cast<ptrdiff_t>(size))), NoImage)
        << size;
  }
  Bytes damaged = png;
  damaged[damaged.size() / 2] ^= std::byte{0x40};
  EXPECT_THROW(decode(damaged), NoImage);
}

TEST(DecodePng, RefusesMorePixelsThanAllowed) {
  Decoder strict({.max_pixels = 100});
  Image image;
  EXPECT_THAT(
      [&] { strict.decode(make_png(test_picture(10, 11)), 3, image); },
      ThrowsMessage<BrokenImage>(HasSubstr("PNG of 11x10 pixels; at most 100 pixels are decoded")));
  strict.decode(make_png(test_picture(10, 10)), 3, image);
  EXPECT_EQ(image.width(), 10);
}

TEST(DecodePnm, ReadsTextAndBinaryOfAnyDepth) {
  const Image picture = test_picture(13, 17);
  for (const unsigned max_value : {255U, 65535U, 1000U}) {
    for (const char kind : {'3', '6'}) {
      const Image decoded = decode(make_pnm(picture, kind, max_value));
      EXPECT_LT(mean_difference(decoded, picture), max_value == 1000 ? 0.3 : 1e-9)
          << kind << max_value;
    }
    for (const char kind : {'2', '5'}) {
      const Image decoded = decode(make_pnm(picture, kind, max_value), 1);
      EXPECT_LT(mean_difference(decoded, to_grey(picture)), max_value == 1000 ? 0.3 : 1e-9)
          << kind << max_value;
    }
  }
}

TEST(DecodePnm, SpreadsFewLevelsOverTheWholeRange) {
  const Image image = decode(to_bytes("P2 3 1 2 0 1 2"), 1);
  EXPECT_EQ(image.pixels()[0], 0);
  EXPECT_EQ(image.pixels()[1], 128);
  EXPECT_EQ(image.pixels()[2], 255);
}

TEST(DecodePnm, NamesWhatIsWrong) {
  const auto message = [](const char* text, const char* part) {
    EXPECT_THAT([&] { decode(to_bytes(text)); }, ThrowsMessage<BrokenImage>(HasSubstr(part)))
        << text;
  };
  message("P5", "cut short before its width");
  message("P5 x", "no number for its width");
  message("P5 2 2 255\nabc", "cut short");
  message("P5 2 2 70000\nabcdefgh", "largest value is 70000");
  message("P5 0 2 255\n", "without pixels");
  message("P2 1 1 10 11", "a pixel of 11, more than 10");
  message("P6 99999999999 2 255\n", "huge number");
  message("P5 60000 60000 255\n", "60000x60000 pixels");
  message("GIF89a", "neither JPEG, PNG, PGM nor PPM");
  message("", "0 bytes");
}

}  // namespace
}  // namespace outrigger::data
