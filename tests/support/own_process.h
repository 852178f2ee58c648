#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace outrigger::testing_support {

/// Runs `body` in a process of its own, in which the test begins anew: what a process can settle
/// only once, as its instruction set, is open there. A failure in it is the test's.
template <typename Body>
void in_own_process(const Body& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&] {
    body();
    const testing::TestResult& result =
        *testing::UnitTest::GetInstance()->current_test_info()->result();
    for (int i = 0; i < result.total_part_count(); ++i)
      std::fprintf(stderr, "%s\n", result.GetTestPartResult(i).message());
    std::_Exit(result.Failed() ? EXIT_FAILURE : EXIT_SUCCESS);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

}  // namespace outrigger::testing_support
