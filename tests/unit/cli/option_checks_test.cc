#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "common/error.h"
#include "common/file.h"
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

TEST(OptionChecks, WhatIsNoCommandIsNamedWithTheNearestOrWithAll) {
  CLI::App program;
  add_commands(program);
  const auto refused = [&](const std::vector<std::string>& words) -> std::string {
    try {
      refuse_unknown_command(program, words);
      return "";
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refused({"run"}), "");
  EXPECT_EQ(refused({"--version"}), "");
  EXPECT_EQ(refused({"generate", "--help"}), "");
  EXPECT_EQ(refused({"generate", "faces", "cats"}), "");
  EXPECT_EQ(refused({"evalute"}), "there is no command \"evalute\"; did you mean evaluate?");
  EXPECT_EQ(refused({"generate", "cats"}),
            "there is no command \"generate cats\"; there are: faces");
  EXPECT_EQ(refused({"generate"}), "generate needs one of: faces");
  EXPECT_EQ(refused({}),
            "a command is needed: run, plan, report, sweep, generate, evaluate, embed, validate, "
            "crd, version");
  EXPECT_THROW(run_command({"--version"}), CLI::CallForVersion);
}

TEST(OptionChecks, AFolderIsNoPage) {
  const TemporaryDirectory folder("outrigger-page");
  try {
    run_command({"report", "runs/faces", "--output", folder.path().string()});
    FAIL() << "a page was written over a folder";
  } catch (const CLI::ValidationError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("is a folder; the name of a file is needed, such "
                                                 "as " +
                                                 (folder.path() / "report.html").string()));
  }
}

TEST(OptionChecks, AReportIsOfTheFolderOfARun) {
  const TemporaryDirectory folder("outrigger-report");
  for (const auto& no_run : {folder.path(), folder.path() / "absent"})
    EXPECT_THROW(run_command({"report", no_run.string()}), InvalidInput) << no_run;
}

TEST(OptionChecks, AMountTakesNoMoreThanItsOwn) {
  // The job's file behind it is read: it is not there.
  for (const char* command : {"run", "plan"})
    EXPECT_THROW(run_command({command, "--mount", "faces=/data", "/absent.yaml"}), InvalidInput)
        << command;
  EXPECT_THROW(run_command({"run", "job.yaml", "--mount", "faces"}), CLI::ValidationError);
}

TEST(OptionChecks, DevicesAreNamed) {
  for (const char* device : {"gpu", "1"})
    EXPECT_THROW(run_command({"run", "/absent.yaml", "--device", device}), CLI::ValidationError);
  for (const char* device : {"auto", "CPU", "cuda"})
    EXPECT_THROW(run_command({"run", "/absent.yaml", "--device", device}), InvalidInput) << device;
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
