#include "api/last_words.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/file.h"

namespace outrigger::api {
namespace {

TEST(LastWords, AreReadAsTheyWereWritten) {
  const TemporaryDirectory folder("outrigger-last-words");
  const auto path = folder.path() / "words";
  write_last_words(path, {ExitCode::kNumericalError, "the loss is not a number", {{"step", 12}}});
  const auto words = parse_last_words(read_file(path));
  ASSERT_TRUE(words);
  EXPECT_EQ(words->code, ExitCode::kNumericalError);
  EXPECT_EQ(words->message, "the loss is not a number");
  EXPECT_EQ(words->progress.at("step"), 12);
}

TEST(LastWords, OverwriteAFileInPlace) {
  const TemporaryDirectory folder("outrigger-last-words");
  const auto path = folder.path() / "words";
  const auto link = folder.path() / "link";
  write_file_atomically(path, std::string(5000, 'x'));
  std::filesystem::create_hard_link(path, link);  // as a mount, it must stay the same file
  write_last_words(path, {ExitCode::kDone, "done", {}});
  EXPECT_TRUE(parse_last_words(read_file(link)));
}

TEST(LastWords, FitIntoWhatKubernetesKeeps) {
  const std::string text =
      to_json_text({ExitCode::kBadData, std::string(9000, '"'), {{"step", 12}}});
  EXPECT_LE(text.size(), 4096);
  const auto words = parse_last_words(text);
  ASSERT_TRUE(words);
  EXPECT_EQ(words->progress.at("step"), 12);
  EXPECT_GT(words->message.size(), 1000);
}

TEST(LastWords, OfACrashAreNone) {
  EXPECT_FALSE(parse_last_words(""));
  EXPECT_FALSE(parse_last_words("Segmentation fault"));
  EXPECT_FALSE(parse_last_words("[1]"));
  EXPECT_FALSE(parse_last_words(R"({"exitCode": "12"})"));
  EXPECT_FALSE(parse_last_words(R"({"exitCode": 137})"));
}

TEST(LastWords, ThatCannotBeWrittenEndNobody) {
  EXPECT_NO_THROW(write_last_words("/nonexistent/words", {ExitCode::kDone, "done", {}}));
  EXPECT_FALSE(std::filesystem::exists("/nonexistent"));
}

}  // namespace
}  // namespace outrigger::api
