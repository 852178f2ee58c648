#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/child_process.h"
#include "common/file.h"
#include "tests/integration/training/job_text.h"

namespace outrigger::integration {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SweepTest : public testing::Test {
 protected:
  /// The program's exit status; what it prints goes to log().
  int outrigger(const std::vector<std::string>& arguments) const {
    ChildProcess child(OUTRIGGER_CLI, arguments, folder_.path() / "log");
    while (!child.poll()) ::usleep(10'000);
    return *child.poll();
  }
  std::string log() const { return read_file(folder_.path() / "log"); }
  int sweep(const JobText& job, const std::filesystem::path& output, const std::string& shares,
            const std::string& steps = "6") const {
    const auto file = folder_.path() / "job.yaml";
    std::ofstream(file) << job_text(job, folder_.path() / "runs");
    return outrigger({"sweep", file.string(), "--output", output.string(), "--shares", shares,
                      "--steps", steps, "--threads", "1", "--worker-threads", "1", "--mount",
                      "faces=" + faces().string()});
  }
  int sweep(const std::string& shares) const { return sweep({.cut = "relu2"}, output(), shares); }
  std::filesystem::path output() const { return folder_.path() / "sweep"; }

  TemporaryDirectory folder_{"outrigger-sweep"};
};

TEST_F(SweepTest, RunsEveryShareAndDrawsMeasuredBesidePredictedAndAmdahl) {
  ASSERT_EQ(sweep("0,100"), 0) << log();
  const json told = json::parse(read_file(output() / "sweep.json"));
  EXPECT_EQ(told["cut"], "relu2");
  ASSERT_EQ(told["points"].size(), 2u);
  EXPECT_EQ(told["points"][0]["stemsAway"], 0);
  EXPECT_EQ(told["points"][1]["stemsAway"], 4);
  for (const json& point : told["points"]) {
    EXPECT_GT(point["measuredImagesPerSecond"].get<double>(), 0);
    EXPECT_GT(point["predictedImagesPerSecond"].get<double>(), 0);
  }
  EXPECT_GT(told["points"][1]["amdahlImagesPerSecond"], told["points"][0]["amdahlImagesPerSecond"]);
  EXPECT_THAT(read_file(output() / "sweep.html"), HasSubstr("<svg"));
  EXPECT_THAT(log(), HasSubstr("2 runs of 6 steps take")) << "before the first";
  for (const char* weights : {"weights.safetensors", "step-6"})
    EXPECT_FALSE(std::filesystem::exists(output() / "share-100-0" / weights)) << weights;
  // What the runs left behind is a run like any other.
  ASSERT_EQ(outrigger({"report", (output() / "share-100-0").string()}), 0) << log();
  const std::string page = read_file(output() / "share-100-0" / "report.html");
  EXPECT_THAT(page, HasSubstr("What limits this run"));
  EXPECT_THAT(page, HasSubstr("relu2 100 %"));
  EXPECT_THAT(page, HasSubstr("Sweep: images a second by share of the stems away"));

  EXPECT_NE(sweep("0"), 0) << "the folder is there";
  EXPECT_THAT(log(), HasSubstr("is there and not empty"));
}

TEST_F(SweepTest, LeavesOutSharesWhoseRunsFailAndEndsAsTheFirstDid) {
  const JobText job{.cut = "relu2", .rate = "100000.0"};
  EXPECT_EQ(sweep(job, output(), "0,100", "200"), 13) << log();
  const json told = json::parse(read_file(output() / "sweep.json"));
  EXPECT_THAT(told["points"][0]["leftOut"].get<std::string>(),
              HasSubstr("status 13 (NumericalError)"));
  EXPECT_TRUE(std::filesystem::exists(output() / "share-100-0")) << "the sweep went on";
  EXPECT_THAT(read_file(output() / "sweep.html"), HasSubstr("left out: its run ended"));
}

TEST_F(SweepTest, TakesACutByItsStageAndLeavesTheJobsCheckpointsAlone) {
  std::string model = small_net();
  model.replace(model.find("relu2"), 5, "stage.relu2");
  const auto kept = folder_.path() / "kept";
  const JobText job{.cut = "stage", .checkpoint_path = kept.string(), .model = model};
  for (const char* name : {"first", "second"}) {
    const auto output = folder_.path() / name;
    ASSERT_EQ(sweep(job, output, "100"), 0) << log();
    EXPECT_EQ(json::parse(read_file(output / "sweep.json"))["cut"], "stage.relu2");
  }
  EXPECT_FALSE(std::filesystem::exists(kept));
}

}  // namespace
}  // namespace outrigger::integration
