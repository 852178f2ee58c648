#include "api/exit_codes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <set>

namespace outrigger::api {
namespace {

TEST(ExitCodes, EachIsThereOnceBelowWhatShellsUse) {
  std::set<int> numbers;
  std::set<std::string_view> names;
  for (const ExitCodeInfo& row : exit_code_table()) {
    const int number = static_cast<int>(row.code);
    EXPECT_TRUE(numbers.insert(number).second) << number;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_LT(number, 126);
    EXPECT_EQ(info(row.code).name, row.name);
    EXPECT_EQ(find_exit_code(number)->name, row.name);
  }
}

TEST(ExitCodes, WhatTheUserMustMendIsNotRetried) {
  for (const auto code : {ExitCode::kInvalidSpec, ExitCode::kNotSupported, ExitCode::kBadData,
                          ExitCode::kNumericalError, ExitCode::kJoinRefused, ExitCode::kBadUsage}) {
    EXPECT_FALSE(info(code).retryable) << info(code).name;
  }
  for (const auto code :
       {ExitCode::kStopped, ExitCode::kHung, ExitCode::kIoFailure, ExitCode::kPeerLost}) {
    EXPECT_TRUE(info(code).retryable) << info(code).name;
  }
  EXPECT_FALSE(info(ExitCode::kStopped).counted);
}

TEST(ExitCodes, ASignalsStatusIsNotOurs) { EXPECT_FALSE(find_exit_code(137)); }

TEST(ExitCodes, EveryExceptionHasOne) {
  EXPECT_EQ(exit_code_of(Failure(ExitCode::kHung, "")), ExitCode::kHung);
  EXPECT_EQ(exit_code_of(InvalidInput("")), ExitCode::kInvalidSpec);
  EXPECT_EQ(exit_code_of(IoError("")), ExitCode::kIoFailure);
  EXPECT_EQ(exit_code_of(std::filesystem::filesystem_error("", std::error_code())),
            ExitCode::kIoFailure);
  EXPECT_EQ(exit_code_of(Cancelled("")), ExitCode::kStopped);
  EXPECT_EQ(exit_code_of(std::bad_alloc()), ExitCode::kOutOfMemory);
  EXPECT_EQ(exit_code_of(std::runtime_error("")), ExitCode::kInternalError);
}

}  // namespace
}  // namespace outrigger::api
