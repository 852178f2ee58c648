#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "common/child_process.h"
#include "common/file.h"
#include "tests/integration/training/job_text.h"
#include "tests/integration/training/training_run.h"

/// The planner at work in real processes. What layers take is told to them, so that it is known
/// which plan is the best.
namespace outrigger::integration {
namespace {

using nlohmann::json;

constexpr int kSteps = 60;

class FollowingTest : public testing::Test {
 protected:
  /// The program's exit status.
  int outrigger(const std::vector<std::string>& arguments,
                const std::filesystem::path& output) const {
    ChildProcess child(OUTRIGGER_CLI, arguments, output);
    while (!child.poll()) ::usleep(10'000);
    return *child.poll();
  }

  /// What `outrigger plan` measures of the job, with times of another machine: a step of 0.2 s, of
  /// which the first layer takes nine tenths.
  json slow_profile(const std::filesystem::path& job) const {
    EXPECT_EQ(outrigger({"plan", job.string(), "--threads", "1", "-o", "json", "--mount",
                         "faces=" + faces().string()},
                        path("plan.json")),
              0);
    json profile = json::parse(read_file(path("plan.json"))).at("profile");
    profile["decode"] = 1e-4;
    profile["optimizer"] = 1e-4;
    for (json& layer : profile["layers"]) layer["forward"] = layer["backward"] = 0;
    profile["layers"].front()["forward"] = 0.015;
    profile["layers"].front()["backward"] = 0.03;
    profile["layers"].back()["forward"] = 0.005;
    for (json& cut : profile["cuts"]) {
      const bool whole = cut["name"] == "Input";
      cut["head"] = whole ? 0.05 : 0.005;
      cut["stemForward"] = whole ? 0 : 0.015;
      cut["stemBackward"] = whole ? 0 : 0.03;
    }
    return profile;
  }

  /// A run of so many ranks that share so many emulated workers, of which each runs stems in a
  /// tenth of the time that a server takes.
  void run(int ranks, int workers) const {
    std::ofstream(job_) << job_text(
        {.cut = "Auto", .share = -1, .steps = kSteps, .replicas = ranks}, path("runs"));
    std::ofstream(path("profile.json")) << slow_profile(job_);
    ASSERT_EQ(outrigger({"run", job_.string(), "--workers", std::to_string(workers), "--emulate",
                         path("profile.json").string(), "--device-cores", "1", "--worker-cores",
                         "20", "--threads", "1", "--worker-threads", "1", "--mount",
                         "faces=" + faces().string()},
                        path("log")),
              0)
        << read_file(path("log"));
  }

  /// The plan of the last step.
  json last_plan() const {
    const auto steps = events("step");
    const auto plans = events("plan");
    if (steps.size() != size_t{kSteps}) return {};
    const auto last = std::find_if(plans.begin(), plans.end(), [&](const json& plan) {
      return plan.at("plan") == steps.back().at("plan");
    });
    return last == plans.end() ? json() : *last;
  }

  std::vector<json> events(const std::string& type) const {
    std::vector<json> found;
    std::istringstream lines(read_file(path("runs") / "test" / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      if (json event = json::parse(line); event["type"] == type) found.push_back(event);
    }
    return found;
  }

  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  TemporaryDirectory folder_{"outrigger-following"};
  const std::filesystem::path job_ = folder_.path() / "job.yaml";
};

TEST_F(FollowingTest, StemsGoToWorkersThatRunThemInATenthOfTheTime) {
  run(1, 2);
  EXPECT_EQ(events("plan").front().at("cut"), "Input");
  const json last = last_plan();
  ASSERT_TRUE(last.is_object());
  EXPECT_GE(last.at("sharePercent").get<int>(), 50) << last.dump();
  EXPECT_NE(last.at("reason").get<std::string>().find("ms a step expected"), std::string::npos);
  const auto steps = events("step");
  EXPECT_LT(steps.back().at("seconds").get<double>(),
            0.6 * steps.front().at("seconds").get<double>());
}

TEST_F(FollowingTest, WorkersThatLeaveAndComeAndAServerThatIsStartedAgain) {
  TrainingRun run({.cut = "Auto", .share = -1, .steps = 100'000});
  std::ofstream(path("profile.json")) << slow_profile(run.job_file());
  run.emulate(path("profile.json"));
  run.start_server();
  const size_t first = run.start_worker({.emulated_cores = 20});
  const size_t second = run.start_worker({.emulated_cores = 20});
  constexpr int kPatience = 400;  // seconds: under a sanitizer plans are seldom compared
  run.wait_for_plan(true, kPatience);
  for (const size_t worker : {first, second}) {
    ASSERT_TRUE(run.signal_worker(worker, SIGKILL));
    run.wait_for_worker(worker);
  }
  run.wait_for_plan(false, kPatience);
  run.start_worker({.emulated_cores = 20});
  run.wait_for_plan(true, kPatience);

  run.signal_server(SIGTERM);
  ASSERT_EQ(run.wait_for_server(), 20);
  const json found = run.events("plan").back();
  run.start_server(true);
  run.start_worker({.emulated_cores = 20});
  run.wait_for_log("as before the restart", kPatience);
  const json again = run.events("plan").back();
  for (const char* field : {"cut", "stemsAway", "localInputPercent"})
    EXPECT_EQ(again.at(field), found.at(field));
  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20);
}

/// Bytes a second since the status before, in the direction of more.
double rate_between(const json& before, const json& now, double seconds) {
  const auto more = [&](const char* field) {
    return now.at("feed").at(field).get<double>() - before.at("feed").at(field).get<double>();
  };
  return std::max(more("bytesIn"), more("bytesOut")) / seconds;
}

// All stems away would move 89 KB a step, 4 MB a second, and three of four 1 MB a second. Two move
// at most 69 KB in the 0.11 s that the server needs for the others.
TEST_F(FollowingTest, NoMoreBytesASecondThanTheJobAllowsArePlannedAndPass) {
  constexpr double kMost = 800'000;
  TrainingRun run(
      {.cut = "relu2", .share = -1, .steps = 100'000, .more_split = ", maxBytesPerSecond: 800000"});
  std::ofstream(path("profile.json")) << slow_profile(run.job_file());
  run.emulate(path("profile.json"));
  run.start_server();
  for (int i = 0; i < 2; ++i) run.start_worker({.emulated_cores = 20});
  run.wait_for_plan(true, 400);
  run.wait_for_step(run.step() + 5);  // what was sent ahead has passed
  const json plan = run.events("plan").back();
  const auto begin = std::chrono::steady_clock::now();
  const json before = run.status();
  run.wait_for_step(run.step() + 50);
  const json now = run.status();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  const double rate = rate_between(before, now, passed.count());
  EXPECT_LT(rate, kMost) << now.dump();
  EXPECT_GT(plan.at("stemsAway"), 0) << plan.dump();
  EXPECT_THAT(
      plan.at("reason").get<std::string>(),
      testing::HasSubstr(std::to_string(plan.at("stemsAway").get<int>()) + " of 4 stems away"));
}

TEST_F(FollowingTest, OfTwoRanksBothHaveWorkersForThem) {
  run(2, 4);
  const json last = last_plan();
  ASSERT_TRUE(last.is_object());
  EXPECT_GE(last.at("sharePercent").get<int>(), 50) << last.dump();
  const json trace = json::parse(read_file(path("runs") / "test" / "trace.json"));
  std::set<int> ranks;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("name") == "micro-batch") ranks.insert(event.at("pid").get<int>());
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1})) << "one picture of both";
}

TEST_F(FollowingTest, OfTwoRanksOneHasNoWorkerForThem) {
  double planning = 0;
  run(2, 1);
  const json last = last_plan();
  ASSERT_TRUE(last.is_object());
  EXPECT_EQ(last.at("cut"), "Input") << last.dump();
  for (const json& step : events("step")) planning += step.at("planningSeconds").get<double>();
  EXPECT_GT(planning, 0.001) << "plans were compared";
}

}  // namespace
}  // namespace outrigger::integration
