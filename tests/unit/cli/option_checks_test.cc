#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "common/error.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

TEST(OptionChecks, AnEmptyTextIsNoFolder) {
  const std::vector<std::vector<std::string>> commands{
      {"run", "job.yaml", "--output", ""},
      {"sweep", "job.yaml", "--output", ""},
      {"report", "runs/faces", "--output", ""},
      {"generate", "faces", ""},
      {"embed", "w", "p.jpg", "--out", ""},
      {"evaluate", "w", "--data", "d", "--gallery", ""},
      {"evaluate", "w", "--data", ""},
      {"run", ""},
      {"report", ""},
      {"embed", "", "p.jpg"}};
  for (const auto& command : commands)
    EXPECT_THROW(run_command(command), CLI::ValidationError) << command.front();
}

TEST(OptionChecks, WhatIsNoCommandIsNamedWithTheNearest) {
  CLI::App program;
  add_commands(program);
  EXPECT_NO_THROW(refuse_unknown_command(program, "run"));
  EXPECT_NO_THROW(refuse_unknown_command(program, "--version"));
  try {
    refuse_unknown_command(program, "evalute");
    FAIL() << "there is no such command";
  } catch (const CLI::ParseError& error) {
    EXPECT_STREQ(error.what(), "there is no command \"evalute\"; did you mean evaluate?");
  }
  EXPECT_THROW(run_command({"--version"}), CLI::CallForVersion);
}

TEST(OptionChecks, AMountTakesNoMoreThanItsOwn) {
  // The job's file behind it is read: it is not there.
  for (const char* command : {"run", "plan"})
    EXPECT_THROW(run_command({command, "--mount", "faces=/data", "/absent.yaml"}), IoError)
        << command;
  EXPECT_THROW(run_command({"run", "job.yaml", "--mount", "faces"}), CLI::ValidationError);
}

TEST(OptionChecks, DevicesAreNamed) {
  for (const char* device : {"gpu", "1"})
    EXPECT_THROW(run_command({"run", "/absent.yaml", "--device", device}), CLI::ValidationError);
  for (const char* device : {"auto", "CPU", "cuda"})
    EXPECT_THROW(run_command({"run", "/absent.yaml", "--device", device}), IoError) << device;
}

TEST(OptionChecks, DrawnFacesHaveBounds) {
  for (const char* option : {"--identities", "--train", "--size", "--threads"})
    EXPECT_THROW(run_command({"generate", "faces", "folder", option, "0"}), CLI::ValidationError)
        << option;
}

TEST(OptionChecks, VerificationTakesAPairOfEitherKindForEachFold) {
  for (const char* pairs : {"-5", "0", "19"})
    EXPECT_THROW(run_command({"evaluate", "w", "--data", "d", "--pairs", pairs}),
                 CLI::ValidationError)
        << pairs;
}

}  // namespace
}  // namespace outrigger::cli
