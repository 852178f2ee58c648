#include "telemetry/json_lines.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <string>

#include "common/error.h"

namespace outrigger::telemetry {
namespace {

class JsonLinesTest : public testing::Test {
 protected:
  std::string content() const { return read_file(path_); }

  TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_.path() / "run" / "metrics.jsonl";
};

TEST_F(JsonLinesTest, EveryLineIsInTheFileAtOnce) {
  JsonLines lines(path_);
  EXPECT_TRUE(lines.append(R"({"step": 1})"));
  EXPECT_EQ(content(), "{\"step\": 1}\n");
  EXPECT_TRUE(lines.append(R"({"step": 2})"));
  EXPECT_EQ(content(), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST_F(JsonLinesTest, AResumedRunContinuesTheFile) {
  JsonLines(path_).append("{}");
  JsonLines(path_).append("{}");
  EXPECT_EQ(content(), "{}\n{}\n");
}

TEST_F(JsonLinesTest, ALineThatACrashCutShortIsRemoved) {
  std::filesystem::create_directories(path_.parent_path());
  write_file_atomically(path_, "{\"step\": 1}\n{\"text\": \"" + std::string(10000, 'x'));
  JsonLines(path_).append("{}");
  EXPECT_EQ(content(), "{\"step\": 1}\n{}\n");
}

TEST_F(JsonLinesTest, TwoAttemptsThatLiveDoNotWriteOverEachOther) {
  JsonLines earlier(path_);
  earlier.append("{\"step\": 1}");
  JsonLines later(path_);
  later.append("{\"step\": 2}");
  earlier.append("{\"step\": 3}");
  later.append("{\"step\": 4}");
  EXPECT_EQ(content(), "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n{\"step\": 4}\n");
}

TEST_F(JsonLinesTest, ALineThatAnotherAttemptIsWritingIsLeftAlone) {
  const JsonLines earlier(path_);
  std::ofstream(path_, std::ios::app) << "{\"step\"";
  const JsonLines later(path_);
  std::ofstream(path_, std::ios::app) << ": 1}\n";
  EXPECT_EQ(content(), "{\"step\": 1}\n");
}

TEST_F(JsonLinesTest, NoLineIsWrittenBehindHalfAnothers) {
  const JsonLines earlier(path_);
  std::ofstream(path_, std::ios::app) << "{\"step\"";
  JsonLines later(path_);
  later.append("{\"step\": 2}");
  later.append("{\"step\": 3}");
  EXPECT_EQ(content(), "{\"step\"\n{\"step\": 2}\n{\"step\": 3}\n");
}

TEST_F(JsonLinesTest, AFullDiskDropsLinesAndNeverThrows) {
  JsonLines lines(path_);
  ASSERT_TRUE(lines.append("{\"step\": 1}"));
  rlimit former{};
  ::getrlimit(RLIMIT_FSIZE, &former);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{20, former.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_FALSE(lines.append("{\"step\": 2, \"loss\": 0.5}"));
  EXPECT_FALSE(lines.append("{\"step\": 3, \"loss\": 0.5}"));
  ::setrlimit(RLIMIT_FSIZE, &former);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(lines.dropped(), 2);
  EXPECT_EQ(content(), "{\"step\": 1}\n");
  EXPECT_TRUE(lines.append("{\"step\": 4}"));
  EXPECT_EQ(content(), "{\"step\": 1}\n{\"step\": 4}\n");
}

TEST_F(JsonLinesTest, AFolderThatCannotBeMadeIsAnError) {
  std::filesystem::create_directories(path_.parent_path());
  write_file_atomically(path_, "");
  EXPECT_THROW(JsonLines(path_ / "below-a-file" / "metrics.jsonl"), IoError);
}

}  // namespace
}  // namespace outrigger::telemetry
