#include "data/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/hash.h"
#include "data/pixels/resample.h"
#include "odd_images.h"

namespace outrigger::data {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

PipelineOptions options_of(std::vector<AugmentStep> augment, int height = 48, int width = 40,
                           int channels = 3) {
  PipelineOptions options;
  options.height = height;
  options.width = width;
  options.channels = channels;
  options.augment = std::move(augment);
  options.seed = 11;
  return options;
}

Image train(const Pipeline& pipeline, const Bytes& encoded, uint64_t slot) {
  const PipelineOptions& o = pipeline.options();
  Pipeline::Scratch scratch;
  Image image(o.height, o.width, o.channels);
  pipeline.train(encoded, slot, scratch, std::as_writable_bytes(image.pixels()));
  return image;
}

Image evaluate(const Pipeline& pipeline, const Bytes& encoded) {
  const PipelineOptions& o = pipeline.options();
  Pipeline::Scratch scratch;
  Image image(o.height, o.width, o.channels);
  pipeline.evaluate(encoded, scratch, std::as_writable_bytes(image.pixels()));
  return image;
}

std::vector<AugmentStep> every_step() {
  return {RandomHorizontalFlip{}, RandomResizedCrop{}, ColorJitter{0.4, 0.4, 0.4, 0.1},
          RandomRotation{15}, RandomErasing{}};
}

/// All kinds of files, so that a golden hash covers every decoder.
std::vector<Bytes> inputs() {
  const Image picture = test_picture(151, 203);
  return {make_jpeg(picture),
          make_jpeg(picture, {.progressive = true, .orientation = 6}),
          make_jpeg(picture, {.colors = JpegColors::kGrey}),
          make_jpeg(picture, {.colors = JpegColors::kYcck}),
          make_png(picture),
          make_pnm(picture, '6')};
}

std::string hash_of_everything() {
  Bytes all;
  for (const int channels : {1, 3}) {
    const Pipeline pipeline(options_of(every_step(), 48, 40, channels));
    Bytes pixels(pipeline.pixels_size());
    Pipeline::Scratch scratch;
    uint64_t slot = 0;
    for (const Bytes& input : inputs()) {
      for (int i = 0; i < 5; ++i) {
        pipeline.train(input, slot++, scratch, pixels);
        all.insert(all.end(), pixels.begin(), pixels.end());
      }
      pipeline.evaluate(input, scratch, pixels);
      all.insert(all.end(), pixels.begin(), pixels.end());
    }
  }
  return to_hex(sha256(all));
}

TEST(Pipeline, GivesTheRecordedPixels) {
  // Recorded on x86-64 with libjpeg-turbo 2.1.5. Another hash means that jobs in flight would see
  // other pixels.
  EXPECT_EQ(hash_of_everything(),
            "2f03012fdce83d10feccc3ad9c76e0744f5cb027556286be7ff884342732e827");
}

TEST(Pipeline, GivesTheSamePixelsWithEveryInstructionSet) {
  const std::string best = hash_of_everything();
  for (const std::string& name : pixels::instruction_sets()) {
    pixels::use_instruction_set(name);
    EXPECT_EQ(hash_of_everything(), best) << name;
  }
  pixels::use_instruction_set("");
}

TEST(Pipeline, DependsOnSeedAndSlotAlone) {
  const Bytes input = inputs().front();
  const Pipeline pipeline(options_of(every_step()));
  EXPECT_EQ(mean_difference(train(pipeline, input, 5), train(pipeline, input, 5)), 0);
  EXPECT_GT(mean_difference(train(pipeline, input, 5), train(pipeline, input, 6)), 0);
  PipelineOptions other = options_of(every_step());
  other.seed = 12;
  EXPECT_GT(mean_difference(train(pipeline, input, 5), train(Pipeline(other), input, 5)), 0);
}

TEST(Pipeline, IsSharedByThreadsThatEachHaveAScratch) {
  const Pipeline pipeline(options_of(every_step()));
  const std::vector<Bytes> files = inputs();
  std::vector<Image> expected;
  for (uint64_t slot = 0; slot < 24; ++slot)
    expected.push_back(train(pipeline, files[slot % files.size()], slot));
  std::vector<std::jthread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      Pipeline::Scratch scratch;
      Image image(48, 40, 3);
      for (uint64_t slot = 0; slot < 24; ++slot) {
        pipeline.train(files[slot % files.size()], slot, scratch,
                       std::as_writable_bytes(image.pixels()));
        wrong[t] += mean_difference(image, expected[slot]) > 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Pipeline, WithoutStepsCoversTheShapeAndCutsTheMiddle) {
  // Twice as wide as high, left half black: the middle square is black on its left.
  Image picture(40, 80, 3);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 80 * 3; ++x) picture.row(y)[x] = x < 40 * 3 ? 0 : 200;
  }
  const Pipeline pipeline(options_of({}, 20, 20));
  const Image image = train(pipeline, make_png(picture), 0);
  EXPECT_EQ(image.row(10)[0], 0);
  EXPECT_EQ(image.row(10)[8 * 3], 0);
  EXPECT_EQ(image.row(10)[11 * 3], 200);
  EXPECT_EQ(mean_difference(image, evaluate(pipeline, make_png(picture))), 0);
}

TEST(Pipeline, LeavesAnImageOfTheWantedSizeUntouched) {
  const Image picture = test_picture(48, 40);
  EXPECT_EQ(mean_difference(evaluate(Pipeline(options_of({})), make_png(picture)), picture), 0);
}

TEST(Pipeline, AFlipMirrorsAndNothingElse) {
  const Image picture = test_picture(48, 40);
  const Image flipped =
      train(Pipeline(options_of({RandomHorizontalFlip{1}})), make_png(picture), 0);
  EXPECT_EQ(mean_difference(flipped, oriented(picture, 2)), 0);
  const Image kept = train(Pipeline(options_of({RandomHorizontalFlip{0}})), make_png(picture), 0);
  EXPECT_EQ(mean_difference(kept, picture), 0);
}

TEST(Pipeline, FlipsAboutHalfOfTheSlots) {
  const Image picture = test_picture(48, 40);
  const Bytes png = make_png(picture);
  const Pipeline pipeline(options_of({RandomHorizontalFlip{}}));
  int flipped = 0;
  for (uint64_t slot = 0; slot < 400; ++slot)
    flipped += mean_difference(train(pipeline, png, slot), picture) > 0;
  EXPECT_NEAR(flipped, 200, 50);  // five standard deviations
}

TEST(Pipeline, CropsAreTheSameWhetherFlippedBeforeOrAfter) {
  // The crop's step is drawn by its place in the list, so put it first in both and compare flips of
  // its result.
  const Bytes png = make_png(test_picture(100, 120));
  const Image plain = train(Pipeline(options_of({RandomResizedCrop{0.3, 0.6}})), png, 3);
  const Image flipped =
      train(Pipeline(options_of({RandomResizedCrop{0.3, 0.6}, RandomHorizontalFlip{1}})), png, 3);
  EXPECT_EQ(mean_difference(oriented(plain, 2), flipped), 0);
}

TEST(Pipeline, CropsSeeTheOrientedImage) {
  const Image picture = test_picture(90, 130);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Bytes stored = make_jpeg(
        picture, {.sampling_x = 1, .sampling_y = 1, .orientation = orientation, .quality = 100});
    const Bytes upright = make_jpeg(oriented(picture, orientation),
                                    {.sampling_x = 1, .sampling_y = 1, .quality = 100});
    const Pipeline pipeline(options_of({RandomResizedCrop{0.2, 0.5}}));
    for (uint64_t slot = 0; slot < 5; ++slot) {
      EXPECT_LT(mean_difference(train(pipeline, stored, slot), train(pipeline, upright, slot)), 1)
          << orientation;
    }
  }
}

TEST(Pipeline, DecodingAShrunkJpegLooksLikeShrinkingIt) {
  const Image picture = test_picture(480, 640);
  const Pipeline pipeline(options_of({}, 56, 56));
  const Image from_jpeg = evaluate(pipeline, make_jpeg(picture));
  const Image from_png = evaluate(pipeline, make_png(picture));
  EXPECT_LT(mean_difference(from_jpeg, from_png), 1.5);
}

TEST(Pipeline, JitterAndErasingChangeWhatTheySay) {
  const Image picture = test_picture(48, 40);
  const Bytes png = make_png(picture);
  const Image erased = train(Pipeline(options_of({RandomErasing{1, 0.2, 0.2, 1, 1, 77}})), png, 1);
  int filled = 0;
  int changed = 0;
  for (size_t i = 0; i < picture.size(); i += 3) {
    filled +=
        erased.pixels()[i] == 77 && erased.pixels()[i + 1] == 77 && erased.pixels()[i + 2] == 77;
    changed += erased.pixels()[i] != picture.pixels()[i];
  }
  EXPECT_NEAR(filled, 0.2 * 48 * 40, 25);
  EXPECT_LE(changed, filled);
  const Image jittered = train(Pipeline(options_of({ColorJitter{0.5, 0, 0, 0}})), png, 1);
  EXPECT_GT(mean_difference(jittered, picture), 0);
}

TEST(Pipeline, EvaluationResizesTheShorterSideFirst) {
  PipelineOptions options = options_of({}, 20, 20);
  options.evaluation_resize = 40;
  const Image image = evaluate(Pipeline(options), make_png(test_picture(40, 60)));
  // The middle 20 x 20 of the picture at its own size.
  const Image picture = test_picture(40, 60);
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 60; ++x) ASSERT_EQ(image.row(y)[x], picture.row(y + 10)[x + 60]);
  }
}

TEST(Pipeline, NamesTheFieldThatIsNotAllowed) {
  const auto message = [](PipelineOptions options, const char* text) {
    EXPECT_THAT([&] { Pipeline pipeline(options); }, ThrowsMessage<InvalidInput>(HasSubstr(text)));
  };
  message(options_of({}, 0), "image.height is 0");
  message(options_of({}, 8, 8, 2), "image.channels is 2; allowed is 1 or 3");
  message(options_of({RandomHorizontalFlip{1.5}}),
          "randomHorizontalFlip.probability is 1.5; allowed is 0 to 1");
  message(options_of({RandomResizedCrop{0.9, 0.5}}), "randomResizedCrop.minScale is greater than");
  message(options_of({RandomResizedCrop{0, 1}}), "randomResizedCrop.minScale is 0");
  message(options_of({RandomErasing{0.5, 0.1, 0.2, 0.01, 1}}), "randomErasing.minRatio is 0.01");
  message(options_of({ColorJitter{0, 0, 0, 0.7}}), "colorJitter.hue is 0.7; allowed is 0 to 0.5");
  message(options_of({RandomRotation{190}}), "randomRotation.degrees is 190");
  message(options_of({Resize{0}}), "resize.shorterSide is 0");
  message(options_of({ColorJitter{std::nan(""), 0, 0, 0}}), "colorJitter.brightness is nan");
}

/// A grey image, one pixel wide; libpng writes none as high.
Bytes thin_image(int height) {
  Image image(height, 1, 3);
  std::fill(image.pixels().begin(), image.pixels().end(), uint8_t{90});
  return make_pnm(image, '5');
}

TEST(Pipeline, RefusesThinImagesThatAResizeMakesTooLong) {
  // Its longer side would have 2^32 pixels.
  const Bytes thin = thin_image(1 << 24);
  for (const AugmentStep& step :
       {AugmentStep{CenterCrop{}}, AugmentStep{RandomResizedCrop{}}, AugmentStep{ColorJitter{}}}) {
    const Pipeline pipeline(options_of({Resize{256}, step}));
    EXPECT_THROW(train(pipeline, thin, 0), BrokenImage);
  }
  EXPECT_THROW(evaluate(Pipeline(options_of({})), thin), BrokenImage);
}

TEST(Pipeline, RefusesThinImagesWhosePixelsAResizeMakesTooMany) {
  const Bytes thin = thin_image(65'500);
  // 256 x 16,768,000 pixels.
  for (const AugmentStep& step : {AugmentStep{ColorJitter{}}, AugmentStep{RandomRotation{}},
                                  AugmentStep{RandomErasing{.probability = 1}}}) {
    const Pipeline pipeline(options_of({Resize{256}, step}));
    EXPECT_THAT([&] { train(pipeline, thin, 0); },
                ThrowsMessage<BrokenImage>(
                    HasSubstr("an image of 1x65500 pixels would become 256x16768000; at most")));
  }
  const Image cut = train(Pipeline(options_of({Resize{256}, CenterCrop{}})), thin, 0);
  EXPECT_EQ(cut.row(20)[20], 90) << "only the crop is computed";
}

TEST(Pipeline, CallsNoImageWhatIsBrokenWhereverOneLooks) {
  const Bytes jpeg = make_jpeg(test_picture(64, 64));
  const Bytes png = make_png(test_picture(64, 64));
  for (const AugmentStep& step : {AugmentStep{CenterCrop{}}, AugmentStep{RandomResizedCrop{}}}) {
    const Pipeline pipeline(options_of({step}, 8, 8));
    for (const Bytes& bytes :
         {Bytes{}, to_bytes("this is no image"), to_bytes("P5 100000 100000 255\n"),
          Bytes(jpeg.begin(), jpeg.end() - 1), Bytes(png.begin(), png.end() - 20)}) {
      EXPECT_THROW(train(pipeline, bytes, 0), NoImage) << bytes.size();
      EXPECT_THROW(evaluate(pipeline, bytes), NoImage) << bytes.size();
    }
  }
}

TEST(Pipeline, AJpegThatIsDamagedBelowSomeCropsIsBrokenForOthersAlone) {
  Bytes jpeg = make_jpeg(test_picture(256, 256), {.restart_rows = 1});
  // A marker that does not belong there ends the data of the scan early.
  const size_t low = jpeg.size() - jpeg.size() / 8;
  jpeg[low] = std::byte{0xFF};
  jpeg[low + 1] = std::byte{0xC4};
  const Pipeline pipeline(options_of({RandomResizedCrop{0.05, 0.1}}));
  int whole = 0;
  int broken = 0;
  for (uint64_t slot = 0; slot < 40; ++slot) {
    try {
      train(pipeline, jpeg, slot);
      ++whole;
    } catch (const NoImage& error) {
      FAIL() << "slot " << slot << ": " << error.what();
    } catch (const BrokenImage&) {
      ++broken;
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(broken, 0);
}

TEST(Pipeline, ThrowsForBrokenBytesAndGoesOn) {
  const Pipeline pipeline(options_of(every_step()));
  Pipeline::Scratch scratch;
  Bytes pixels(pipeline.pixels_size());
  Bytes broken = inputs().front();
  broken.resize(broken.size() / 2);
  EXPECT_THROW(pipeline.train(broken, 0, scratch, pixels), BrokenImage);
  pipeline.train(inputs().front(), 0, scratch, pixels);
}

}  // namespace
}  // namespace outrigger::data
