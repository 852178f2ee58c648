#include "worker/read_failures.h"

#include <gtest/gtest.h>

namespace outrigger::worker {
namespace {

TEST(ReadFailures, AreToldAtOnceAndThenEveryTenSecondsWithTheirNumber) {
  ReadFailures failures;
  const TimePoint begin{std::chrono::hours(1)};
  EXPECT_EQ(failures.note("no 1.jpg", begin),
            "a lease is given back, since a read failed: no 1.jpg");
  EXPECT_EQ(failures.note("no 2.jpg", begin + std::chrono::milliseconds(1)), std::nullopt);
  EXPECT_EQ(failures.note("no 3.jpg", begin + std::chrono::milliseconds(9999)), std::nullopt);
  EXPECT_EQ(failures.note("no 4.jpg", begin + std::chrono::seconds(10)),
            "a lease is given back, since a read failed: no 4.jpg (and 2 more since this was last "
            "said)");
  EXPECT_EQ(failures.note("no 5.jpg", begin + std::chrono::seconds(60)),
            "a lease is given back, since a read failed: no 5.jpg");
}

}  // namespace
}  // namespace outrigger::worker
