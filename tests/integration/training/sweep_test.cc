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
  int sweep(const std::string& shares) const {
    const auto job = folder_.path() / "job.yaml";
    std::ofstream(job) << job_text({.cut = "relu2"}, folder_.path() / "runs");
    return outrigger({"sweep", job.string(), "--output", output().string(), "--shares", shares,
                      "--steps", "6", "--threads", "1", "--worker-threads", "1", "--mount",
                      "faces=" + faces().string()});
  }
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
  // What the runs left behind is a run like any other.
  ASSERT_EQ(outrigger({"report", (output() / "share-100-0").string()}), 0) << log();
  const std::string page = read_file(output() / "share-100-0" / "report.html");
  EXPECT_THAT(page, HasSubstr("What limits this run"));
  EXPECT_THAT(page, HasSubstr("relu2 100 %"));
  EXPECT_THAT(page, HasSubstr("Sweep: images a second by share of the stems away"));

  EXPECT_NE(sweep("0"), 0) << "the folder is there";
  EXPECT_THAT(log(), HasSubstr("is there and not empty"));
}

}  // namespace
}  // namespace outrigger::integration
