#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

TEST(OptionChecks, AnEmptyTextIsNoFolder) {
  const std::vector<std::vector<std::string>> commands{
      {"run", "job.yaml", "--output", ""},      {"sweep", "job.yaml", "--output", ""},
      {"report", "runs/faces", "--output", ""}, {"generate", "faces", ""},
      {"embed", "w", "p.jpg", "--out", ""},     {"evaluate", "w", "--data", "d", "--gallery", ""}};
  for (const auto& command : commands)
    EXPECT_THROW(run_command(command), CLI::ValidationError) << command.front();
}

TEST(OptionChecks, VerificationTakesAPairOfEitherKindForEachFold) {
  for (const char* pairs : {"-5", "0", "19"})
    EXPECT_THROW(run_command({"evaluate", "w", "--data", "d", "--pairs", pairs}),
                 CLI::ValidationError)
        << pairs;
}

}  // namespace
}  // namespace outrigger::cli
