#include "api/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/exit_codes.h"

namespace outrigger::api {
namespace {

std::optional<std::string> no_variables(std::string_view) { return std::nullopt; }

/// What a program that is started so says; it must end as with bad usage.
std::string bad_usage(Role role, const std::vector<const char*>& arguments) {
  try {
    read_command_line(role, arguments, no_variables);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::kBadUsage);
    return failure.what();
  }
  return "nothing";
}

TEST(CommandLine, ThatIsWrongIsBadUsage) {
  EXPECT_THAT(bad_usage(Role::kServer, {"--foo"}), testing::HasSubstr("--foo"));
  EXPECT_THAT(bad_usage(Role::kWorker, {"--server", "foo"}), testing::HasSubstr("HOST:PORT"));
}

TEST(CommandLine, WithoutWhatTheProgramNeedsIsBadUsage) {
  EXPECT_THAT(bad_usage(Role::kServer, {}), testing::HasSubstr("--job FILE is missing"));
  EXPECT_THAT(bad_usage(Role::kWorker, {}), testing::HasSubstr("--server HOST:PORT is missing"));
}

TEST(CommandLine, ThatIsRightIsTheLaunch) {
  const std::vector<const char*> arguments{"--job", "a.yaml", "--rank", "1", "--replicas", "2"};
  EXPECT_EQ(read_command_line(Role::kServer, arguments, no_variables).rank, 1);
}

}  // namespace
}  // namespace outrigger::api
