#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/file.h"
#include "data/image_folder.h"
#include "data/sample.h"
#include "data/sample_reader.h"

namespace outrigger::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void put(const fs::path& path, std::string_view content = "x") {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> paths_of(const Dataset& dataset) {
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < dataset.size(); ++i) paths.push_back(dataset.at(i).path);
  return paths;
}

class Folders : public ::testing::Test {
 protected:
  TemporaryDirectory temporary_;
  fs::path root_ = temporary_.path() / "faces";
};

TEST_F(Folders, ListClassesAndFilesBytewise) {
  put(root_ / "b" / "2.jpg");
  put(root_ / "b" / "10.PNG");
  put(root_ / "a" / "z.pgm");
  put(root_ / "B" / "x.Jpeg");
  put(root_ / "a" / "deep" / "er" / "y.ppm");
  put(root_ / "a" / "notes.txt");
  put(root_ / "a" / ".hidden.jpg");
  put(root_ / ".cache" / "x.jpg");
  put(root_ / "readme.jpg");
  const Dataset dataset = list_image_folder(root_);
  EXPECT_THAT(dataset.classes(), ElementsAre("B", "a", "b"));
  EXPECT_THAT(paths_of(dataset),
              ElementsAre("B/x.Jpeg", "a/z.pgm", "a/deep/er/y.ppm", "b/10.PNG", "b/2.jpg"));
  EXPECT_EQ(dataset.label(0), 0);
  EXPECT_EQ(dataset.label(2), 1);
  EXPECT_EQ(dataset.at(4), (Sample{"b/2.jpg", 0, 0, 2}));
  EXPECT_FALSE(dataset.is_sharded());
  EXPECT_THAT(dataset.block_starts(), ElementsAre(0, 1, 2, 3));
}

TEST_F(Folders, NameWhatIsMissing) {
  const auto message = [&](const char* text, ListOptions options = {}) {
    EXPECT_THAT([&] { list_image_folder(root_, options); },
                ThrowsMessage<InvalidInput>(HasSubstr(text)));
  };
  message("no such folder");
  fs::create_directories(root_);
  message("no class in it");
  put(root_ / "anna" / "1.jpg");
  fs::create_directories(root_ / "bob");
  message("class \"bob\" has no image");
  put(root_ / "bob" / "1.jpg");
  message("class \"anna\" has 1 image; at least 2 are wanted",
          {.min_images_per_class = 2, .classes = {}});
  message("\"bob\" is not one of the 2 classes",
          {.min_images_per_class = 1, .classes = {"anna", "carl"}});
}

TEST_F(Folders, TakeTheLabelsOfTheTrainingClasses) {
  put(root_ / "bob" / "1.jpg");
  const Dataset dataset =
      list_image_folder(root_, {.min_images_per_class = 1, .classes = {"anna", "bob"}});
  EXPECT_EQ(dataset.label(0), 1);
  EXPECT_THAT(dataset.classes(), ElementsAre("anna", "bob"));
}

TEST_F(Folders, GiveUnknownClassesLabelsBehindTheKnownOnesWhereWanted) {
  for (const char* name : {"carl", "bob", "abel"}) put(root_ / name / "1.jpg");
  const Dataset dataset = list_image_folder(
      root_,
      {.min_images_per_class = 1, .classes = {"zoe", "bob"}, .unknown = UnknownClass::kAppended});
  EXPECT_THAT(dataset.classes(), ElementsAre("zoe", "bob", "abel", "carl"));
  EXPECT_THAT(paths_of(dataset), ElementsAre("abel/1.jpg", "bob/1.jpg", "carl/1.jpg"));
  EXPECT_EQ(dataset.label(0), 2);
  EXPECT_EQ(dataset.label(1), 1);
  EXPECT_EQ(dataset.label(2), 3);
}

TEST_F(Folders, TellOnceOfFilesThatArePassedOver) {
  for (const char* name : {"1.jpg", "2.webp", "3.WEBP", "4.bmp", "notes", ".hidden.webp"})
    put(root_ / "a" / name);
  put(root_ / "a" / "deep" / "5.webp");
  put(root_ / "b" / "1.jpg");
  put(root_ / "b" / "2.tif");
  put(root_ / "readme.txt");
  fs::create_symlink("nowhere.webp", root_ / "a" / "dangling.webp");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(list_image_folder(root_).size(), 2U);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("faces: images are *.jpg, *.jpeg, *.png, *.pgm and *.ppm; passed over are "
                        "3 *.webp (a/2.webp), 1 without a suffix (a/notes), 1 *.bmp "
                        "(a/4.bmp) and 1 more\n"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1);
  fs::remove_all(root_ / "a");
  fs::remove(root_ / "b" / "2.tif");
  ::testing::internal::CaptureStderr();
  static_cast<void>(list_image_folder(root_));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "there is nothing to tell";
}

TEST_F(Folders, FollowLinksButNotInCircles) {
  put(temporary_.path() / "elsewhere" / "1.jpg");
  put(root_ / "a" / "0.jpg");
  fs::create_directory_symlink(temporary_.path() / "elsewhere", root_ / "a" / "more");
  fs::create_directory_symlink(root_ / "a", root_ / "a" / "again");
  fs::create_symlink("nowhere.jpg", root_ / "a" / "dangling.jpg");
  EXPECT_THAT(paths_of(list_image_folder(root_)), ElementsAre("a/0.jpg", "a/more/1.jpg"));
}

TEST_F(Folders, HaveAFingerprintOfClassesPathsAndLabels) {
  put(root_ / "a" / "1.jpg");
  put(root_ / "b" / "1.jpg");
  const Sha256 before = list_image_folder(root_).fingerprint();
  EXPECT_EQ(list_image_folder(root_).fingerprint(), before);
  put(root_ / "b" / "2.jpg");
  const Sha256 after = list_image_folder(root_).fingerprint();
  EXPECT_NE(after, before);
  fs::remove(root_ / "b" / "2.jpg");
  EXPECT_EQ(list_image_folder(root_).fingerprint(), before);
  fs::rename(root_ / "b", root_ / "c");
  EXPECT_NE(list_image_folder(root_).fingerprint(), before);
}

TEST_F(Folders, AreProbedByTheBytesOfAFewSamples) {
  for (int i = 0; i < 30; ++i) put(root_ / "a" / (std::to_string(i) + ".jpg"), std::to_string(i));
  const Dataset dataset = list_image_folder(root_);
  const std::vector<Sample> chosen = choose_probe(dataset, 5);
  EXPECT_EQ(chosen.size(), 8U);
  EXPECT_EQ(chosen, choose_probe(dataset, 5));
  EXPECT_NE(chosen, choose_probe(dataset, 6));
  const Sha256 digest = probe(root_, chosen);
  EXPECT_EQ(probe(root_, chosen), digest);
  put(root_ / chosen[3].path, "other");
  EXPECT_NE(probe(root_, chosen), digest);
  fs::remove(root_ / chosen[3].path);
  EXPECT_THAT([&] { probe(root_, chosen); }, ThrowsMessage<IoError>(HasSubstr(chosen[3].path)));
}

TEST_F(Folders, ProbeAllSamplesWhenThereAreFew) {
  put(root_ / "a" / "1.jpg");
  put(root_ / "a" / "2.jpg");
  EXPECT_EQ(choose_probe(list_image_folder(root_), 1).size(), 2U);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(Folders, AreReadFileByFileAndRangeByRange) {
  put(root_ / "a.jpg", "hello");
  put(root_ / "s1.tar", "0123456789");
  put(root_ / "s2.tar", "abcdefghij");
  SampleReader reader(root_, {.open_shards = 1});
  EXPECT_EQ(text_of(reader.read({"a.jpg", 0, 0, 0})), "hello");
  EXPECT_EQ(text_of(reader.read({"s1.tar", 3, 4, 0})), "3456");
  EXPECT_EQ(text_of(reader.read({"s2.tar", 0, 10, 0})), "abcdefghij");
  EXPECT_EQ(text_of(reader.read({"s1.tar", 9, 1, 0})), "9");
}

TEST_F(Folders, RefuseToBeReadWhereTheyHaveNothing) {
  put(root_ / "s.tar", "0123456789");
  SampleReader reader(root_, {.max_image_bytes = 8});
  EXPECT_THAT(
      [&] {
        reader.read({"no.jpg", 0, 0, 0});
      },
      ThrowsMessage<IoError>(HasSubstr("no.jpg")));
  EXPECT_THAT(
      [&] {
        reader.read({"s.tar", 8, 5, 0});
      },
      ThrowsMessage<IoError>(HasSubstr("cut short: at offset 8 it has 2 of the 5 bytes")));
  EXPECT_THAT(
      [&] {
        reader.read({"s.tar", 0, 0, 0});
      },
      ThrowsMessage<InvalidInput>(HasSubstr("10 bytes; at most 8")));
  EXPECT_THAT(
      [&] {
        reader.read({"../s.tar", 0, 1, 0});
      },
      ThrowsMessage<InvalidInput>(HasSubstr("..")));
  EXPECT_THROW(reader.read({"", 0, 0, 0}), IoError);
  EXPECT_EQ(text_of(reader.read({"s.tar", 1, 2, 0})), "12");
}

TEST(Dataset, KeepsTenMillionSamplesInLittleMemory) {
  // A tenth of them here.
  Dataset dataset;
  dataset.set_classes({"a"});
  constexpr uint32_t kSamples = 1000000;
  for (uint32_t i = 0; i < kSamples; ++i) {
    if (i % 10000 == 0)
      dataset.begin_container("shard-" + std::to_string(i / 10000) + ".tar", true);
    dataset.add_range(512 + i % 10000 * uint64_t{20000}, 10000, 0);
  }
  dataset.finish();
  EXPECT_EQ(dataset.size(), kSamples);
  EXPECT_LT(dataset.memory_bytes(), kSamples * 20.1);
  EXPECT_EQ(dataset.block_starts().size(), 100U);
  EXPECT_EQ(dataset.at(123456), (Sample{"shard-12.tar", 512 + 3456 * uint64_t{20000}, 10000, 0}));
}

}  // namespace
}  // namespace outrigger::data
