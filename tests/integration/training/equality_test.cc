#include <gtest/gtest.h>

#include "tests/integration/training/training_run.h"

/// The promise with real processes and real links: any cut, share and number of workers, killed or
/// stopped wherever: bitwise the weights of the local worker alone, and every slot once. Servers
/// that die are resume_test's, workers that die again and again storm_test's.
namespace outrigger::integration {
namespace {

const TrainingRun& alone() {
  static const std::unique_ptr<TrainingRun> run = train({}, 0);
  return *run;
}

void expect_as_alone(const TrainingRun& run, const std::string& what) {
  expect_same_run(run, alone(), what);
}

TEST(Equality, AnyCutShareAndNumberOfWorkersGivesBitwiseTheSameWeights) {
  struct Case {
    const char* cut;
    int share;
    int workers;
  };
  for (const Case& one : {Case{"Input", 100, 2}, Case{"relu1", 100, 0}, Case{"relu1", 50, 1},
                          Case{"relu2", 100, 2}, Case{"drop2", 75, 3}, Case{"relu3", 100, 4}}) {
    const auto run = train({.cut = one.cut, .share = one.share}, one.workers);
    expect_as_alone(*run,
                    std::string(one.cut) + " with " + std::to_string(one.workers) + " workers");
  }
}

TEST(Equality, AWorkerThatDiesOrStopsAtAnyPointChangesNothing) {
  for (const char* point :
       {"got-lease", "got-weights", "sent-micro-batch", "got-gradient", "sent-stem-gradient"}) {
    for (const char* signal : {"KILL", "STOP"}) {
      TrainingRun run({.cut = "relu2", .share = 100});
      run.start_server();
      run.start_worker({.fault = std::string(point) + ":2:" + signal});
      run.start_worker({.fault = std::string(point) + ":3:" + signal});
      run.start_worker();
      EXPECT_EQ(run.wait_for_server(), 0) << point << " " << signal;
      expect_as_alone(run, std::string(point) + " " + signal);
    }
  }
}

TEST(Equality, ACutThatIsMovedAgainAndAgainWhileWorkersDieChangesNothing) {
  const JobText job{.cut = "relu2", .share = 75, .steps = 300};
  const auto truth = train({.steps = job.steps}, 0);
  TrainingRun run(job);
  run.start_server();
  run.start_worker({.fault = "got-gradient:20:KILL"});
  run.start_worker({.fault = "got-lease:30:STOP"});
  run.start_worker();
  int64_t next = 6;
  int number = 1;
  for (const char* split :
       {R"({"cut": "relu1", "sharePercent": 50})", R"({"cut": "Input"})",
        R"({"cut": "drop2", "sharePercent": 100})", R"({"cut": "relu1", "sharePercent": 25})",
        R"({"cut": "relu2", "sharePercent": 0})", R"({"cut": "relu2", "sharePercent": 100})"}) {
    run.wait_for_step(next);
    ASSERT_TRUE(run.server_runs());
    EXPECT_EQ(run.wish_plan(split), 202) << split;
    // Else a newer wish may come before this one is taken.
    run.wait_for_log("plan " + std::to_string(++number) + " from step");
    next += 10;
  }
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_same_run(run, *truth, "moved cuts");
  EXPECT_EQ(run.events("plan").size(), 7u) << "the first and six wishes";
}

TEST(Equality, WithStalenessWorkersDoNotMatterEither) {
  const JobText job{.cut = "relu2", .share = 100, .staleness = 1};
  const auto truth = train(job, 0);
  EXPECT_EQ(train(job, 3)->weights(), truth->weights());
  EXPECT_NE(truth->weights(), alone().weights());
}

}  // namespace
}  // namespace outrigger::integration
