#include "cli/embedding_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/error.h"
#include "common/file.h"
#include "nn/safetensors.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;

class EmbeddingFile : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return temporary_.path() / name; }

  const std::vector<float> values_ = {0.1f, -2.5f, 1e-30f, 3, 4, 5};
  const EmbeddingTable table_{values_, 3, {"a.jpg", "b \"c\".jpg"}};

 private:
  TemporaryDirectory temporary_;
};

TEST_F(EmbeddingFile, InSafetensorsReadsBackWithItsPaths) {
  write_embeddings(table_, path("e.safetensors"));
  const nn::SafetensorsReader reader(path("e.safetensors"));
  const nn::StoredTensor* tensor = reader.find("embeddings");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (Shape{2, 3}));
  EXPECT_EQ(reader.read(*tensor), values_);
  EXPECT_EQ(nlohmann::json::parse(reader.metadata().at("paths")), nlohmann::json(table_.paths));
}

TEST_F(EmbeddingFile, InNumPysFormatHasAnAlignedHeaderAndTheValuesBehindIt) {
  write_embeddings(table_, path("e.npy"));
  const std::string file = read_file(path("e.npy"));
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t header =
      static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
  EXPECT_EQ((10 + header) % 64, 0u);
  EXPECT_EQ(file[10 + header - 1], '\n');
  EXPECT_THAT(file, HasSubstr("'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)"));
  ASSERT_EQ(file.size(), 10 + header + values_.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(file.data() + 10 + header, values_.data(), values_.size() * sizeof(float)),
            0);
  EXPECT_EQ(read_file(path("e.npy.paths")), "a.jpg\nb \"c\".jpg\n");
}

TEST_F(EmbeddingFile, InJsonLinesGivesBackEveryFloat) {
  write_embeddings(table_, path("e.jsonl"));
  std::istringstream lines(read_file(path("e.jsonl")));
  std::string line;
  size_t row = 0;
  for (; std::getline(lines, line); ++row) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("path"), table_.paths[row]);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(json.at("embedding")[i].get<float>(), values_[row * 3 + i]);
  }
  EXPECT_EQ(row, 2u);
}

TEST_F(EmbeddingFile, InAFolderThatIsNotThereIsRefusedBeforeTheWork) {
  EXPECT_THROW(check_embedding_file(path("absent/e.npy")), IoError);
  EXPECT_NO_THROW(check_embedding_file(path("e.npy")));
  EXPECT_NO_THROW(check_embedding_file("e.npy"));
}

TEST_F(EmbeddingFile, OfAnotherKindIsRefusedByItsName) {
  try {
    write_embeddings(table_, path("e.csv"));
    FAIL() << "a file of an unknown kind was written";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("e.csv"));
    EXPECT_THAT(error.what(), HasSubstr(".npy"));
  }
}

}  // namespace
}  // namespace outrigger::cli
