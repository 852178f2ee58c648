#include "tests/unit/cli/run_command.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/commands.h"
#include "common/error.h"

namespace outrigger::cli {

Outcome run_command(std::vector<std::string> arguments) {
  CLI::App program;
  add_commands(program);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  Outcome outcome;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto take_output = [&] {
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.err = testing::internal::GetCapturedStderr();
  };
  try {
    program.parse(arguments);
  } catch (const CLI::RuntimeError& ended) {
    outcome.status = ended.get_exit_code();
  } catch (...) {
    take_output();
    throw;
  }
  take_output();
  return outcome;
}

std::string output_of(std::vector<std::string> arguments) {
  const Outcome outcome = run_command(std::move(arguments));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome.out;
}

std::string refusal_of(const std::function<void()>& doing) {
  try {
    doing();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

}  // namespace outrigger::cli
