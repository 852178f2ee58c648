#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/file.h"
#include "data/image_folder.h"
#include "data/pipeline.h"

namespace outrigger::data {
namespace {

namespace fs = std::filesystem;

fs::path data_folder() {
  const char* given = std::getenv("OUTRIGGER_DATA");
  return given != nullptr ? fs::path(given)
                          : fs::path(OUTRIGGER_SOURCE_DIR) / ".." / "shared" / "data";
}

TEST(RealPhotos, AllDecodeAndAugment) {
  const fs::path folder = data_folder() / "photos";
  if (!fs::is_directory(folder)) GTEST_SKIP() << folder << " is not there";
  PipelineOptions options;
  options.height = options.width = 112;
  options.augment = {RandomResizedCrop{}, RandomHorizontalFlip{}, ColorJitter{0.4, 0.4, 0.4, 0.1},
                     RandomRotation{10}};
  const Pipeline pipeline(options);
  Pipeline::Scratch scratch;
  std::vector<std::byte> pixels(pipeline.pixels_size());
  uint64_t slot = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string content = read_file(entry.path());
    const auto encoded = std::as_bytes(std::span(content.data(), content.size()));
    EXPECT_NO_THROW(pipeline.train(encoded, slot++, scratch, pixels)) << entry.path();
    EXPECT_NO_THROW(pipeline.evaluate(encoded, scratch, pixels)) << entry.path();
  }
  EXPECT_GE(slot, 100U);
}

TEST(RealPhotos, OrlFacesListAsFortyPeople) {
  const fs::path folder = data_folder() / "orl";
  if (!fs::is_directory(folder)) GTEST_SKIP() << folder << " is not there";
  const Dataset dataset = list_image_folder(folder, {.min_images_per_class = 10, .classes = {}});
  EXPECT_EQ(dataset.classes().size(), 40U);
  EXPECT_EQ(dataset.size(), 400U);
  Decoder decoder;
  Image image;
  const std::string content = read_file(folder / dataset.at(7).path);
  decoder.decode(std::as_bytes(std::span(content.data(), content.size())), 1, image);
  EXPECT_EQ(image.width(), 92);
  EXPECT_EQ(image.height(), 112);
}

}  // namespace
}  // namespace outrigger::data
