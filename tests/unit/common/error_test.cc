#include "common/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace outrigger {
namespace {

TEST(Error, ThrowErrnoSaysWhatWasTriedAndWhatCameBack) {
  try {
    throw_errno("opening /no/such", ENOENT);
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "opening /no/such: No such file or directory");
  }
}

TEST(ErrorDeathTest, ABrokenInvariantAbortsWithItsPlace) {
  EXPECT_DEATH(ensure(false, "two owners"), "error_test.cc:[0-9]+: impossible state: two owners");
}

TEST(Error, AnInvariantThatHoldsCostsNothing) {
  EXPECT_NO_FATAL_FAILURE(ensure(true, "never printed"));
}

}  // namespace
}  // namespace outrigger
