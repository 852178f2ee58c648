#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "cli/sweep/rounds.h"
#include "cli/sweep/sweep.h"
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
  EXPECT_EQ(run.spec.checkpoint.every_steps, 30) << "at its end alone";
  const api::TrainingJob unsplit = job_of(job, {.cut = "pool1", .share_percent = 5});
  EXPECT_EQ(unsplit.spec.split.cut, "Input");
  EXPECT_FALSE(unsplit.spec.split.share_percent);
}

TEST(SweepRun, IsOneForEachShareHoweverOftenItIsNamed) {
  EXPECT_EQ(distinct({50, 0, 50, 100, 0}), (std::vector<int>{50, 0, 100}));
}

TEST(SweepRun, IsShortWhereStepsAreSlow) {
  EXPECT_EQ(usual_steps(1000), 1000);
  EXPECT_EQ(usual_steps(10), 75);
  EXPECT_EQ(usual_steps(1), 30);
  EXPECT_EQ(usual_steps(0.25), 15) << "a minute's";
  EXPECT_EQ(usual_steps(0.01), 6);
  EXPECT_EQ(usual_steps(0), 6);
}

TEST(SweepRun, LeavesNoWeights) {
  const TemporaryDirectory folder("outrigger-sweep");
  std::filesystem::create_directories(folder.path() / "step-30");
  for (const char* name : {"weights.safetensors", "step-30/weights.safetensors", "metrics.jsonl"})
    std::ofstream(folder.path() / name) << "{}";
  remove_weights(folder.path(), 30);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "metrics.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "weights.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "step-30"));
}

class SweepRounds : public testing::Test {
 protected:
  Sweep sweep(const std::vector<int>& shares) const {
    Sweep sweep;
    for (const int share : shares) sweep.points.push_back({.share_percent = share});
    return sweep;
  }
  /// What each run measures, by round.
  RunShare rates(const std::vector<double>& by_round) const {
    return [by_round](const SweepPoint&, int round) {
      const double rate = by_round.at(static_cast<size_t>(round));
      return ShareRun{.rate = rate, .stall_percent = rate / 10};
    };
  }
  ReckonShares unchanged_ = [](const Sweep& sweep) {
    return std::vector<Reckoned>(sweep.points.size());
  };
  KeepSweep keep_ = [this](const Sweep& so_far) { kept_.push_back(so_far); };
  std::vector<Sweep> kept_;
};

TEST_F(SweepRounds, CountTheirMedian) {
  const auto measured = [&](const std::vector<double>& by_round) {
    const int rounds = static_cast<int>(by_round.size());
    return run_rounds(sweep({50}), rounds, unchanged_, rates(by_round), keep_).points.front();
  };
  EXPECT_EQ(measured({10, 90, 30}).measured, 30);
  EXPECT_EQ(measured({90, 20, 10, 40}).measured, 30) << "between the two in the middle";
  EXPECT_EQ(measured({90, 20, 10, 40}).stall_percent, 3);
}

TEST_F(SweepRounds, CountTheMedianOfWhatEachReckonedAnew) {
  Sweep told = sweep({0, 50});
  told.points[0].predicted = 10;
  told.points[1].predicted = 100;
  told.points[1].bound = 1000;
  int asked = 0;
  const auto reckon = [&](const Sweep&) {
    ++asked;
    return std::vector<Reckoned>{{.predicted = 30.0 * asked, .bound = 1},
                                 {.predicted = 700.0 / asked, .bound = 1500.0 / asked}};
  };
  told = run_rounds(told, 3, reckon, rates({1, 1, 1}), keep_);
  EXPECT_EQ(asked, 2) << "the first has it already";
  EXPECT_EQ(told.points[0].predicted, 30);
  EXPECT_EQ(told.points[1].predicted, 350);
  EXPECT_EQ(told.points[1].bound, 1000);
  EXPECT_EQ(kept_.front().points[0].predicted, 10);
}

TEST_F(SweepRounds, KeepWhatAShareHasMeasuredBeforeItFails) {
  std::vector<int> ran;
  const auto run = [&](const SweepPoint& point, int round) {
    ran.push_back(point.share_percent);
    if (point.share_percent == 50 && round == 1)
      return ShareRun{.exit_status = 137, .failure = "its run was killed"};
    if (point.share_percent == 100)
      return ShareRun{.exit_status = 13, .failure = "its run ended with status 13"};
    return ShareRun{.rate = 7};
  };
  const Sweep told = run_rounds(sweep({0, 50, 100}), 3, unchanged_, run, keep_);
  EXPECT_EQ(ran, (std::vector<int>{0, 50, 100, 0, 50, 0}));
  EXPECT_EQ(told.points[0].measured, 7);
  EXPECT_EQ(told.points[0].left_out, "");
  EXPECT_EQ(told.points[1].measured, 7);
  EXPECT_EQ(told.points[1].left_out, "") << "a round before has measured it";
  EXPECT_EQ(told.points[2].left_out, "its run ended with status 13");
  EXPECT_EQ(told.exit_status, 13) << "of the first that failed";
}

TEST_F(SweepRounds, AreKeptAfterEachRunSoThatAStopLosesNone) {
  const auto run = [](const SweepPoint& point, int) {
    if (point.share_percent == 100) throw Cancelled("asked to stop");
    return ShareRun{.rate = 7};
  };
  EXPECT_THROW(run_rounds(sweep({0, 50, 100}), 1, unchanged_, run, keep_), Cancelled);
  ASSERT_EQ(kept_.size(), 3u);
  EXPECT_EQ(kept_[0].points[0].left_out, "not run yet");
  const auto& points = kept_.back().points;
  EXPECT_EQ(points[0].measured, 7);
  EXPECT_EQ(points[1].measured, 7);
  EXPECT_EQ(points[1].left_out, "");
  EXPECT_EQ(points[2].left_out, "not run yet");
}

TEST_F(SweepRounds, SayHowLongTheyTake) {
  Sweep told = sweep({0, 50, 100});
  told.points[0].steps = 30;
  told.points[0].seconds = 60;
  told.points[1].steps = 6;
  told.points[1].seconds = 90;
  told.points[2].seconds = 5000;
  told.points[2].left_out = "leaves too little";
  EXPECT_EQ(length_text(told, 2),
            "4 runs of 6 to 30 steps take 5.0 min by the model, and what their starts take");
  told.points[0].steps = 6;
  EXPECT_THAT(length_text(told, 1), HasSubstr("2 runs of 6 steps take 2.5 min"));
}

TEST(SweepPage, HasItsSharesInOrder) {
  Sweep sweep{.cut = "pool1", .workers = 1};
  for (const int share : {50, 0, 100})
    sweep.points.push_back({.share_percent = share, .measured = 5, .predicted = 5, .bound = 5});
  const std::string html = sweep_sections(sweep);
  EXPECT_THAT(html, testing::ContainsRegex("<td>0 %</td>.*\n.*<td>50 %</td>.*\n.*<td>100 %"));
  EXPECT_THAT(html, HasSubstr("d=\"M64.0,")) << "the line begins at the left";
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

TEST(SweepCommand, RefusesACutThatHasNoStems) {
  const TemporaryDirectory folder("outrigger-sweep");
  const auto file = folder.path() / "job.yaml";
  std::ofstream(file) << api::sample_text();
  const auto refused = [&](const std::string& cut) {
    return refusal_of([&] {
      run_command(
          {"sweep", file.string(), "--cut", cut, "--output", (folder.path() / "out").string()});
    });
  };
  EXPECT_THAT(refused("Input"), HasSubstr("--cut: Input has no stems to share out"));
  EXPECT_THAT(refused("nowhere"), HasSubstr("--cut: cannot cut"));
  EXPECT_THROW(refused(""), CLI::ValidationError);
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
