#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "http/client.h"
#include "tests/integration/training/storm.h"

/// Workers killed, stopped, paused and asked to leave in every state of the ledger and at every
/// message, again and again, while others join: the weights are bitwise those of the local worker
/// alone, and every slot is there once.
namespace outrigger::integration {
namespace {

/// A point for each state of the ledger: Drawn, Leased, Received, HeadDone, Committed.
const std::vector<std::string> kStates{"sent-hello", "got-lease", "sent-micro-batch",
                                       "got-gradient", "got-committed"};
/// Every message there is, in both directions, and between two pieces of work.
const std::vector<std::string> kMessages{
    "got-setup",          "sent-hello",           "sent-pull",        "got-lease",
    "got-weights",        "got-evaluation-lease", "sent-micro-batch", "got-gradient",
    "got-backward-lease", "sent-stem-gradient",   "got-cancel",       "got-committed",
    "sent-broken",        "sent-read-failed",     "sent-leaving",     "worked"};

JobText storm_job(int steps) {
  return {.cut = "relu2",
          .share = 75,
          .steps = steps,
          .checkpoint_every = 50,
          .more_training = "    evaluate: {everySteps: 15, keepBest: false}\n",
          .validation = true,
          .broken_images = 2,
          .max_bad_fraction = "0.05"};
}

int64_t count_of(TrainingRun& run, const char* what) {
  http::Client client({.base_url = "http://127.0.0.1:" + std::to_string(run.status_port())});
  return nlohmann::json::parse(client.get("/status").body).at("feed").at(what).get<int64_t>();
}

void tell(const Storm& storm) {
  for (const auto& [fault, count] : storm.counts())
    std::printf("%4zu  %s\n", count, to_string(fault).c_str());
  for (const auto& [held, count] : storm.held())
    std::printf("%4zu  items lost, %s\n", count, to_string(Fault{held.first, held.second}).c_str());
  std::printf("%4zu  faults in all\n", storm.struck());
}

double longest_wait(const TrainingRun& run) {
  double longest = 0;
  for (const auto& step : run.events("step")) {
    longest = std::max(longest, step.at("waitedForInput").get<double>() +
                                    step.at("waitedForGradients").get<double>());
  }
  return longest;
}

/// Kills those that are there.
bool all_workers_are_gone(TrainingRun& run) {
  for (size_t i = 0; i < run.workers(); ++i) run.signal_worker(i, SIGKILL);
  for (int i = 0; i < 600; ++i) {
    if (run.status().at("workers").at("joined") == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

TEST(Storm, OfFaultsInEveryStateAndAtEveryMessageChangesNothing) {
  const bool all = std::getenv("LONG") != nullptr;
  std::vector<Fault> faults = every_kind_at(all ? kMessages : kStates);
  for (const Fault& fault : every_kind_at({"any moment"})) faults.push_back(fault);
  TrainingRun run(storm_job(1'000'000));
  break_images(run.data() / "val", 1);
  run.start_server();
  Storm storm(run, faults, 11);
  storm.rage(all ? 220 : 30, std::chrono::seconds(all ? 1500 : 240));
  ASSERT_TRUE(run.server_runs()) << run.server_log();
  tell(storm);
  EXPECT_THAT(storm.missing(), testing::IsEmpty());
  EXPECT_GT(count_of(run, "secondLeases"), 0);
  EXPECT_GT(count_of(run, "droppedResults"), 0);
  const int64_t carried = count_of(run, "bytesIn");
  EXPECT_GT(carried, 0);
  ASSERT_TRUE(all_workers_are_gone(run));
  EXPECT_GE(count_of(run, "bytesIn"), carried) << "over links that are gone, too";

  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20);
  const int steps = static_cast<int>(run.step()) + 7;
  std::printf("%4d  steps, the longest wait of one was %.2f s\n", steps, longest_wait(run));
  run.change_job(storm_job(steps));
  run.start_server(true);
  run.start_worker({.fault = "got-farewell:1:KILL"});
  run.start_worker({.fault = "got-farewell:1:STOP"});
  EXPECT_EQ(run.wait_for_server(), 0);

  const auto truth = train(storm_job(steps), 0);
  EXPECT_EQ(run.weights(), truth->weights());
  EXPECT_EQ(run.audit(), truth->audit());
}

}  // namespace
}  // namespace outrigger::integration
