#include "data/synthetic/faces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/file.h"
#include "data/image_folder.h"
#include "data/pipeline.h"
#include "data/sample_reader.h"

namespace outrigger::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Pixels {
  std::vector<std::vector<uint8_t>> images;
  std::vector<int32_t> labels;
};

Pixels load(const std::filesystem::path& root, int size) {
  const Dataset dataset = list_image_folder(root);
  PipelineOptions options;
  options.height = options.width = size;
  const Pipeline pipeline(options);
  Pipeline::Scratch scratch;
  SampleReader reader(root);
  Pixels pixels;
  for (uint32_t i = 0; i < dataset.size(); ++i) {
    std::vector<uint8_t> image(pipeline.pixels_size());
    pipeline.evaluate(reader.read(dataset.at(i)), scratch,
                      std::as_writable_bytes(std::span(image)));
    pixels.images.push_back(std::move(image));
    pixels.labels.push_back(dataset.label(i));
  }
  return pixels;
}

int64_t distance(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int difference = int{a[i]} - int{b[i]};
    sum += difference * difference;
  }
  return sum;
}

/// The part of `test` whose nearest neighbour in `train` is the same person.
double nearest_neighbour_accuracy(const Pixels& train, const Pixels& test) {
  int right = 0;
  for (size_t i = 0; i < test.images.size(); ++i) {
    int64_t least = std::numeric_limits<int64_t>::max();
    int32_t label = -1;
    for (size_t k = 0; k < train.images.size(); ++k) {
      const int64_t d = distance(test.images[i], train.images[k]);
      if (d < least) {
        least = d;
        label = train.labels[k];
      }
    }
    right += label == test.labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(test.images.size());
}

TEST(Faces, AreTooVariedForANearestNeighbourOnPixels) {
  const TemporaryDirectory folder;
  const FacesSummary summary = generate_faces({.identities = 40,
                                               .train_per_identity = 12,
                                               .validation_per_identity = 4,
                                               .size = 48,
                                               .threads = 2},
                                              folder.path());
  EXPECT_EQ(summary.images, 40 * 16);
  const Pixels train = load(folder.path() / "train", 24);
  const Pixels test = load(folder.path() / "val", 24);
  EXPECT_EQ(train.images.size(), 480U);
  EXPECT_EQ(test.images.size(), 160U);
  const double accuracy = nearest_neighbour_accuracy(train, test);
  EXPECT_LT(accuracy, 0.5);
  EXPECT_GT(accuracy, 1.0 / 40);  // but they are faces of somebody
}

std::string everything(const std::filesystem::path& root) {
  std::string all;
  const Dataset dataset = list_image_folder(root);
  for (uint32_t i = 0; i < dataset.size(); ++i)
    all += dataset.at(i).path + read_file(root / dataset.at(i).path);
  return all;
}

TEST(Faces, FollowFromTheSeedHoweverManyThreadsDraw) {
  const TemporaryDirectory a, b, c;
  const FacesOptions options{.identities = 3,
                             .train_per_identity = 2,
                             .validation_per_identity = 1,
                             .size = 40,
                             .threads = 1};
  FacesOptions threads = options;
  threads.threads = 3;
  FacesOptions seed = options;
  seed.seed = 2;
  generate_faces(options, a.path());
  generate_faces(threads, b.path());
  generate_faces(seed, c.path());
  EXPECT_EQ(everything(a.path() / "train"), everything(b.path() / "train"));
  EXPECT_EQ(everything(a.path() / "val"), everything(b.path() / "val"));
  EXPECT_NE(everything(a.path() / "train"), everything(c.path() / "train"));
}

TEST(Faces, AreNotDrawnOverOthersNorWithImpossibleNumbers) {
  const TemporaryDirectory folder;
  const auto message = [&](const FacesOptions& options, const char* text) {
    EXPECT_THAT([&] { generate_faces(options, folder.path()); },
                ThrowsMessage<InvalidInput>(HasSubstr(text)));
  };
  message({.identities = 1}, "identities is 1; allowed is 2 to 10000");
  message({.size = 8}, "size is 8");
  FacesOptions small{
      .identities = 2, .train_per_identity = 1, .validation_per_identity = 0, .size = 16};
  generate_faces(small, folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "val"));
  message(small, "exists already");
}

}  // namespace
}  // namespace outrigger::data
