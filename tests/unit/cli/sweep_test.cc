#include "cli/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/file.h"
#include "tests/unit/api/sample_job.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;

TEST(SweepRun, HasItsCheckpointsBesideItsOtherFiles) {
  const api::TrainingJob job =
      api::sample_job("  checkpoint: {path: /kept, volumeClaimName: fast}\n");
  const api::TrainingJob run = job_of(job, {.cut = "pool1", .share_percent = 50, .away = 4});
  EXPECT_FALSE(run.spec.checkpoint.path);
  EXPECT_FALSE(run.spec.checkpoint.volume_claim_name);
  EXPECT_EQ(run.metadata.name, "share-50-0");
  EXPECT_EQ(run.spec.split.cut, "pool1");
  EXPECT_EQ(run.spec.split.share_percent, 50);
  EXPECT_EQ(run.spec.training.steps, 30);
  const api::TrainingJob unsplit = job_of(job, {.cut = "pool1", .share_percent = 5});
  EXPECT_EQ(unsplit.spec.split.cut, "Input");
  EXPECT_FALSE(unsplit.spec.split.share_percent);
}

TEST(SweepRun, IsOneForEachShareHoweverOftenItIsNamed) {
  EXPECT_EQ(distinct({50, 0, 50, 100, 0}), (std::vector<int>{50, 0, 100}));
}

TEST(SweepCommand, WantsAWorkerForEachRank) {
  const TemporaryDirectory folder("outrigger-sweep");
  const auto file = folder.path() / "job.yaml";
  std::ofstream(file) << api::sample_text("  server: {replicas: 2}\n");
  try {
    run_command({"sweep", file.string(), "--output", (folder.path() / "out").string()});
    FAIL() << "one worker for two ranks";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("--workers: 1 is too small; the job has 2 ranks"));
  }
}

TEST(SweepCommand, TakesTheJobBehindItsShares) {
  const TemporaryDirectory folder("outrigger-sweep");
  const auto file = (folder.path() / "job.yaml").string();
  std::ofstream(file) << api::sample_text("  server: {replicas: 2}\n");
  const std::string out = (folder.path() / "out").string();
  const std::vector<std::vector<std::string>> taken{
      {"sweep", "--output", out, "--shares", "0,50", file},
      {"sweep", "--output", out, "--shares", "0", "50", file},
      {"sweep", file, "--output", out, "--shares", "0", "50"}};
  // The job was read: that it has two ranks and one worker is what is refused.
  for (const auto& command : taken) EXPECT_THROW(run_command(command), InvalidInput);
  EXPECT_THROW(run_command({"sweep", "--output", out, "--shares", "0,50"}), CLI::RequiredError);
  EXPECT_THROW(run_command({"sweep", "--output", out}), CLI::RequiredError);
  const std::vector<std::vector<std::string>> wrong{{"0,101"}, {"-1"}, {"0,x"}, {file, "50"}, {""}};
  for (const auto& shares : wrong) {
    std::vector<std::string> command{"sweep", file, "--output", out, "--shares"};
    command.insert(command.end(), shares.begin(), shares.end());
    EXPECT_THROW(run_command(command), CLI::ParseError) << shares.front();
  }
  EXPECT_THROW(run_command({"sweep", "--output", out, "--shares", file}), CLI::ValidationError);
}

}  // namespace
}  // namespace outrigger::cli
