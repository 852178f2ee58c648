#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/image_runner.h"
#include "common/error.h"
#include "tests/unit/cli/model_fixture.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ModelCommands : public ModelTest {
 protected:
  /// A shard of photos of two people, who are numbers there.
  void write_shard(const std::filesystem::path& file) const {
    std::filesystem::create_directories(file.parent_path());
    archive* tar = archive_write_new();
    archive_write_set_format_ustar(tar);
    ASSERT_EQ(archive_write_open_filename(tar, file.c_str()), ARCHIVE_OK);
    const auto add = [&](const std::string& name, const std::string& content) {
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(entry, name.c_str());
      archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_write_header(tar, entry);
      archive_write_data(tar, content.data(), content.size());
      archive_entry_free(entry);
    };
    for (const char* photo : {"ann/0", "ann/1", "bob/0", "bob/1"}) {
      add(std::string(photo) + ".pgm", read_file(path("faces") / (std::string(photo) + ".pgm")));
      add(std::string(photo) + ".cls", photo[0] == 'a' ? "0" : "2");
    }
    archive_write_close(tar);
    archive_write_free(tar);
  }

  void SetUp() override {
    write_weights(path("w.safetensors"));
    for (const char* person : {"ann", "bob"}) {
      for (int photo = 0; photo < 6; ++photo) {
        write_image(path("faces") / person / (std::to_string(photo) + ".pgm"),
                    person[0] == 'a' ? 1 : 5);
      }
    }
  }
};

TEST_F(ModelCommands, EvaluatePrintsEveryMeasureForPeopleAndForPrograms) {
  const std::string text = output_of({"evaluate", path("w.safetensors"), "--data", path("faces")});
  for (const char* word :
       {"lenet5 at 32x32x1", "12 of 2 people", "top-1", "verification", "rank-1"}) {
    EXPECT_THAT(text, HasSubstr(word));
  }
  const auto json = nlohmann::json::parse(output_of(
      {"evaluate", "--weights", path("w.safetensors"), "--data", path("faces"), "-o", "json"}));
  EXPECT_EQ(json.at("images"), 12);
  EXPECT_EQ(json.at("people"), 2);
  EXPECT_TRUE(json.at("top1").contains("accuracy"));
  // All photos of a person are one picture here, so even an untrained net tells them apart.
  EXPECT_EQ(json.at("verification").at("accuracy"), 1.0);
  EXPECT_EQ(json.at("identification").at("rank1"), 1.0);
  EXPECT_EQ(json.at("identification").at("known"), 2);
}

TEST_F(ModelCommands, EvaluateLooksInTheGalleryThatItIsGiven) {
  const auto json =
      nlohmann::json::parse(output_of({"evaluate", path("w.safetensors"), "--data", path("faces"),
                                       "--gallery", path("faces"), "-o", "json"}));
  EXPECT_EQ(json.at("identification").at("known"), 12);
  EXPECT_EQ(json.at("identification").at("asked"), 12);
}

TEST_F(ModelCommands, EvaluateReadsShards) {
  write_shard(path("shards/a.tar"));
  const auto json = nlohmann::json::parse(
      output_of({"evaluate", path("w.safetensors"), "--data", path("shards"), "-o", "json"}));
  EXPECT_EQ(json.at("images"), 4);
  EXPECT_EQ(json.at("people"), 2);
  EXPECT_EQ(json.at("identification").at("rank1"), 1.0);
  EXPECT_THAT(json.at("top1").at("absent").get<std::string>(), HasSubstr("not trained on '0'"));
}

TEST_F(ModelCommands, EvaluateTakesFoldersForPeopleWhereAnArchiveLiesBesideThem) {
  write_shard(path("faces/backup.tar"));
  const auto json = nlohmann::json::parse(
      output_of({"evaluate", path("w.safetensors"), "--data", path("faces"), "-o", "json"}));
  EXPECT_EQ(json.at("images"), 12);
}

TEST_F(ModelCommands, EvaluateLeavesOutWhatIsBroken) {
  std::ofstream(path("faces/ann/0.pgm")) << "P5 40 40 255\nshort";
  const auto json = nlohmann::json::parse(
      output_of({"evaluate", path("w.safetensors"), "--data", path("faces"), "-o", "json"}));
  EXPECT_EQ(json.at("images"), 11);
  EXPECT_EQ(json.at("broken"), 1);
}

TEST_F(ModelCommands, EmbedWritesALineForEachImageInOrder) {
  std::istringstream lines(
      output_of({"embed", path("w.safetensors"), path("faces/bob/0.pgm"), path("faces/ann")}));
  std::vector<std::string> names;
  std::string line;
  while (std::getline(lines, line)) {
    const auto json = nlohmann::json::parse(line);
    names.push_back(std::filesystem::path(json.at("path").get<std::string>())
                        .lexically_relative(path("faces")));
    double squares = 0;
    for (const auto& value : json.at("embedding"))
      squares += value.get<double>() * value.get<double>();
    EXPECT_NEAR(squares, 1.0, 1e-5);
  }
  EXPECT_THAT(names, ElementsAre("bob/0.pgm", "ann/0.pgm", "ann/1.pgm", "ann/2.pgm", "ann/3.pgm",
                                 "ann/4.pgm", "ann/5.pgm"));
}

TEST_F(ModelCommands, EmbedFollowsALinkBeforeItGoesUp) {
  write_image(path("else/photo.pgm"), 1);
  write_image(path("photo.pgm"), 6);
  std::filesystem::create_directories(path("else/inner"));
  std::filesystem::create_directory_symlink(path("else/inner"), path("link"));
  const auto embedding = [&](const std::string& file) {
    const std::string line = output_of({"embed", path("w.safetensors"), path(file)});
    return nlohmann::json::parse(line).at("embedding");
  };
  EXPECT_EQ(embedding("link/../photo.pgm"), embedding("else/photo.pgm"));
  EXPECT_NE(embedding("link/../photo.pgm"), embedding("photo.pgm"));
}

TEST_F(ModelCommands, EmbedRefusesWhatIsNotThere) {
  EXPECT_THROW(output_of({"embed", path("w.safetensors"), path("absent.jpg")}), InvalidInput);
  std::filesystem::create_directories(path("nothing"));
  EXPECT_THROW(output_of({"embed", path("w.safetensors"), path("nothing")}), InvalidInput);
  EXPECT_THROW(output_of({"embed", path("w.safetensors"), path("faces"), "-o", "x.csv"}),
               InvalidInput);
}

TEST_F(ModelCommands, GenerateDrawsADataSetThatEvaluateReads) {
  const auto made = nlohmann::json::parse(
      output_of({"generate", "faces", path("drawn"), "--identities", "3", "--train", "2",
                 "--validation", "1", "--size", "32", "-o", "json"}));
  EXPECT_EQ(made.at("images"), 9);
  const auto json = nlohmann::json::parse(
      output_of({"evaluate", path("w.safetensors"), "--data", path("drawn/train"), "-o", "json"}));
  EXPECT_EQ(json.at("people"), 3);
  EXPECT_THAT(json.at("top1").at("absent").get<std::string>(), HasSubstr("was not trained on"));
}

TEST_F(ModelCommands, RowsDoNotDependOnThreadsAndHardlyOnBatches) {
  const TrainedModel model = load_trained_model(path("w.safetensors"), {});
  std::vector<data::Sample> images;
  for (int look = 0; look < 7; ++look) {
    const std::string name = std::to_string(look) + ".pgm";
    write_image(path(name), look);
    images.push_back({.path = name, .offset = 0, .length = 0, .label = 0});
  }
  const ImageOutputs one = run_images(model, path(""), images, {.threads = 1, .batch = 3});
  const ImageOutputs threads = run_images(model, path(""), images, {.threads = 3, .batch = 3});
  const ImageOutputs batches = run_images(model, path(""), images, {.threads = 1, .batch = 7});
  EXPECT_EQ(one.features, 84);
  EXPECT_EQ(one.embeddings, threads.embeddings);
  ASSERT_EQ(one.embeddings.size(), 7u * 84);
  // Another batch may be another order of the sums, of at most 400 terms each.
  for (size_t i = 0; i < one.embeddings.size(); ++i)
    EXPECT_NEAR(one.embeddings[i], batches.embeddings[i], 1e-5);
}

TEST_F(ModelCommands, TheHeadNamesOnePersonForEachImageWhereItIsAskedTo) {
  TrainedModel model = load_trained_model(path("w.safetensors"), {});
  std::vector<data::Sample> images;
  for (const char* name : {"faces/ann/0.pgm", "faces/bob/0.pgm", "faces/ann/1.pgm"})
    images.push_back({.path = name, .offset = 0, .length = 0, .label = 0});
  EXPECT_TRUE(run_images(model, path(""), images, {.batch = 2}).named.empty());
  model.parameters.back() = 1e6f;  // eve's bias, above all that the others reach
  const RunOptions asked{.batch = 2, .classify = true};
  EXPECT_THAT(run_images(model, path(""), images, asked).named, ElementsAre(2, 2, 2));
  model.card.model.head = nn::HeadKind::kNone;
  EXPECT_TRUE(run_images(model, path(""), images, asked).named.empty());
}

}  // namespace
}  // namespace outrigger::cli
