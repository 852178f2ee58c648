#include "common/log.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace outrigger::log
