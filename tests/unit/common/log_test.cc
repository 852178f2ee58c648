#include "common/log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

namespace {

// Counts how often it is made into text.
struct Counted {
  int* times;
};

}  // namespace

template <>
struct fmt::formatter<Counted> : fmt::formatter<int> {
  auto format(const Counted& counted, fmt::format_context& context) const {
    return fmt::formatter<int>::format(++*counted.times, context);
  }
};

namespace outrigger::log {
namespace {

TEST(Log, ALineThatIsNotWrittenIsNotMade) {
  int times = 0;
  set_level(Level::kWarning);
  info("{}", Counted{&times});
  EXPECT_EQ(times, 0);
  EXPECT_FALSE(is_on(Level::kInfo));
  testing::internal::CaptureStderr();
  warning("said {}", Counted{&times});
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(times, 1);
  EXPECT_NE(written.find("said 1"), std::string::npos) << written;
  EXPECT_TRUE(is_on(Level::kError));
  set_level(Level::kInfo);
}

std::string written(const std::string& text) {
  testing::internal::CaptureStderr();
  warning("{}", text);
  const std::string line = testing::internal::GetCapturedStderr();
  return line.substr(line.find("| ") + 2);
}

TEST(Log, ATextFromOutsideCannotLookLikeAnEvent) {
  EXPECT_EQ(written("a\n2026-01-01T00:00:00.000 E server | all is lost"),
            "a\n  2026-01-01T00:00:00.000 E server | all is lost\n");
  EXPECT_EQ(written("broken:\n  a.png\n  b.png"), "broken:\n  a.png\n  b.png\n");
}

TEST(Log, ControlCharactersAreWrittenAsEscapes) {
  EXPECT_EQ(written("a\r\x1b[2Jb\x7f\xc2\x9b"
                    "1m"),
            "a\\x0d\\x1b[2Jb\\x7f\\u009b1m\n");
  EXPECT_EQ(written(std::string("a\0b", 3)), "a\\x00b\n");
  EXPECT_EQ(written("a\tb caf\u00e9 \u00a0 \xff"), "a\tb caf\u00e9 \u00a0 \xff\n");
}

TEST(Log, ATerminalThatIsGoneEndsNothing) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> gone(std::fopen("/dev/full", "w"),
                                                             &std::fclose);
  ASSERT_NE(gone, nullptr);
  std::setvbuf(gone.get(), nullptr, _IONBF, 0);  // as standard error
  EXPECT_NO_THROW(draw_line(gone.get(), "step 1"));
  EXPECT_EQ(written("a worker left"), "a worker left\n");
  EXPECT_NO_THROW(draw_line(gone.get(), "step 2"));
  EXPECT_NO_THROW(end_line());
  EXPECT_NO_THROW(draw_last_line(gone.get(), "step 3"));
}

}  // namespace
}  // namespace outrigger::log
