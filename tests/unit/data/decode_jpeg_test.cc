#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/codec/reader.h"
#include "data/decode.h"
#include "odd_images.h"

namespace outrigger::data {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Quality 95 with 4:2:0 on smooth colours; a wrong colour transform or orientation is off by tens.
constexpr double kJpegError = 4;

TEST(DecodeJpeg, FindsTheColorsOfEveryColorSpace) {
  const Image picture = test_picture(61, 83);
  for (const JpegColors colors : {JpegColors::kRgb, JpegColors::kYcck, JpegColors::kAdobeCmyk,
                                  JpegColors::kPlainCmyk, JpegColors::kStoredRgb}) {
    const Bytes jpeg = make_jpeg(picture, {.colors = colors});
    EXPECT_LT(mean_difference(decode(jpeg), picture), kJpegError) << static_cast<int>(colors);
    EXPECT_LT(mean_difference(decode(jpeg, 1), to_grey(picture)), kJpegError)
        << static_cast<int>(colors);
  }
}

TEST(DecodeJpeg, GivesGreyImagesThreeEqualChannels) {
  const Image picture = test_picture(40, 56);
  const Bytes jpeg = make_jpeg(picture, {.colors = JpegColors::kGrey});
  const Image grey = decode(jpeg, 1);
  const Image rgb = decode(jpeg, 3);
  EXPECT_LT(mean_difference(grey, to_grey(picture)), kJpegError);
  for (size_t i = 0; i < grey.size(); ++i) {
    ASSERT_EQ(rgb.pixels()[3 * i], grey.pixels()[i]);
    ASSERT_EQ(rgb.pixels()[3 * i + 2], grey.pixels()[i]);
  }
}

TEST(DecodeJpeg, ReadsProgressiveArithmeticAndRestartedFilesAlike) {
  const Image picture = test_picture(50, 70);
  const Image plain = decode(make_jpeg(picture));
  EXPECT_EQ(mean_difference(decode(make_jpeg(picture, {.progressive = true})), plain), 0);
  EXPECT_EQ(mean_difference(decode(make_jpeg(picture, {.arithmetic = true})), plain), 0);
  EXPECT_EQ(mean_difference(decode(make_jpeg(picture, {.restart_rows = 1})), plain), 0);
}

TEST(DecodeJpeg, AppliesEveryExifOrientationInBothByteOrders) {
  const Image picture = test_picture(45, 77);
  const Image stored = decode(make_jpeg(picture));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool big_endian : {false, true}) {
      const Bytes jpeg =
          make_jpeg(picture, {.orientation = orientation, .exif_big_endian = big_endian});
      const Image expected = oriented(stored, orientation);
      EXPECT_EQ(mean_difference(decode(jpeg), expected), 0) << orientation << " " << big_endian;
      Decoder decoder;
      const ImageInfo info = decoder.inspect(jpeg);
      EXPECT_EQ(info.height, expected.height());
      EXPECT_EQ(info.width, expected.width());
    }
  }
}

TEST(DecodeJpeg, TakesAnImpossibleOrientationForNone) {
  const Image picture = test_picture(20, 30);
  EXPECT_EQ(
      mean_difference(decode(make_jpeg(picture, {.orientation = 9})), decode(make_jpeg(picture))),
      0);
}

TEST(DecodeJpeg, DecodesAPartToThePixelsOfTheWhole) {
  const Image picture = test_picture(203, 317);
  for (const int sampling_y : {1, 2}) {
    for (const bool progressive : {false, true}) {
      const Bytes jpeg = make_jpeg(picture, {.progressive = progressive, .sampling_y = sampling_y});
      for (int shrink = 0; shrink <= 3; ++shrink) {
        codec::Reader reader({});
        Image whole, part;
        reader.open(jpeg);
        reader.read({{0, 0, 317, 203}, shrink, 4}, whole);
        for (const codec::Rect& rect :
             {codec::Rect{0, 0, 40, 30}, {130, 95, 64, 50}, {250, 150, 67, 53}, {16, 16, 280, 8}}) {
          reader.open(jpeg);
          const codec::Decoded decoded = reader.read({rect, shrink, 4}, part);
          const int first_x = rect.x >> shrink;
          const int last_x = (rect.x + rect.width - 1) >> shrink;
          const int first_y = rect.y >> shrink;
          const int last_y = (rect.y + rect.height - 1) >> shrink;
          for (int y = first_y; y <= last_y; ++y) {
            for (int x = first_x; x <= last_x; ++x) {
              for (int c = 0; c < 3; ++c) {
                ASSERT_EQ(part.row(y - decoded.y)[4 * (x - decoded.x) + c], whole.row(y)[4 * x + c])
                    << "pixel " << x << "," << y << " shrunk by 2^" << shrink << " sampling "
                    << sampling_y;
              }
            }
          }
        }
      }
    }
  }
}

TEST(DecodeJpeg, CallsATruncatedFileBrokenWhereverItEnds) {
  const Bytes jpeg = make_jpeg(test_picture(64, 64));
  for (const size_t size : {size_t{2}, size_t{30}, jpeg.size() / 2, jpeg.size() - 1}) {
    const Bytes cut(jpeg.begin(), jpeg.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_THROW(decode(cut), NoImage) << size;
  }
}

TEST(DecodeJpeg, CallsAFileWithDamagedPixelsBroken) {
  Bytes jpeg = make_jpeg(test_picture(64, 64), {.restart_rows = 1});
  // A marker that does not belong there ends the data of the scan early.
  const size_t middle = jpeg.size() - jpeg.size() / 8;
  jpeg[middle] = std::byte{0xFF};
  jpeg[middle + 1] = std::byte{0xC4};
  EXPECT_THROW(decode(jpeg), BrokenImage);
}

TEST(DecodeJpeg, RefusesAHugeHeaderBeforeTakingMemory) {
  Bytes jpeg = make_jpeg(test_picture(16, 16), {.colors = JpegColors::kGrey});
  // The frame header: FF C0, length, precision, height, width.
  for (size_t i = 0; i + 8 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xFF} && jpeg[i + 1] == std::byte{0xC0}) {
      jpeg[i + 5] = jpeg[i + 7] = std::byte{0xF0};
    }
  }
  EXPECT_THAT([&] { decode(jpeg); },
              ThrowsMessage<NoImage>(HasSubstr("pixels; at most 134217728 pixels are decoded")));
}

TEST(DecodeJpeg, LimitsTheScansOfAProgressiveFile) {
  const Bytes jpeg = make_jpeg(test_picture(32, 32), {.progressive = true});
  Decoder strict({.max_scans = 2});
  Image image;
  EXPECT_THAT([&] { strict.decode(jpeg, 3, image); },
              ThrowsMessage<BrokenImage>(HasSubstr("more than 2 scans")));
}

TEST(DecodeJpeg, KnowsNoTableOfTheImageBefore) {
  const Bytes jpeg = make_jpeg(test_picture(64, 48));
  const Bytes define_tables{std::byte{0xFF}, std::byte{0xDB}};
  const auto tables =
      std::search(jpeg.begin(), jpeg.end(), define_tables.begin(), define_tables.end());
  ASSERT_NE(tables, jpeg.end());
  const auto length = std::to_integer<ptrdiff_t>(tables[2]) * 256 + std::to_integer<int>(tables[3]);
  Bytes without(jpeg.begin(), tables);
  without.insert(without.end(), tables + 2 + length, jpeg.end());
  Decoder decoder;
  Image image;
  decoder.decode(jpeg, 3, image);
  EXPECT_THAT([&] { decoder.decode(without, 3, image); },
              ThrowsMessage<BrokenImage>(HasSubstr("Quantization table")));
}

TEST(DecodeJpeg, ServesGoodImagesAfterABrokenOne) {
  const Bytes jpeg = make_jpeg(test_picture(64, 48));
  const Image expected = decode(jpeg);
  Decoder decoder;
  Image image;
  EXPECT_THROW(decoder.decode(Bytes(jpeg.begin(), jpeg.begin() + 400), 3, image), BrokenImage);
  EXPECT_THROW(decoder.decode({}, 3, image), NoImage);
  decoder.decode(jpeg, 3, image);
  EXPECT_EQ(mean_difference(image, expected), 0);
}

}  // namespace
}  // namespace outrigger::data
