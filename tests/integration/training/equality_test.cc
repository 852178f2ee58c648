#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "common/random.h"
#include "tests/integration/training/training_run.h"

/// The promise with real processes and real links: any cut, share and number of workers, killed or
/// stopped wherever, servers killed and resumed: bitwise the weights of the local worker alone, and
/// every slot once.
namespace outrigger::integration {
namespace {

const TrainingRun& alone() {
  static const std::unique_ptr<TrainingRun> run = train({}, 0);
  return *run;
}

void expect_as_alone(const TrainingRun& run, const std::string& what) {
  EXPECT_EQ(run.weights(), alone().weights()) << what;
  EXPECT_EQ(run.audit(), alone().audit()) << what;
  uint64_t slot = 0;
  for (const auto& [step, line] : run.audit()) {
    EXPECT_EQ(line.first_slot, slot) << what << ", step " << step;
    for (const auto& samples : line.samples) slot += samples.size();
  }
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
      run.start_worker(std::string(point) + ":2:" + signal);
      run.start_worker(std::string(point) + ":3:" + signal);
      run.start_worker();
      EXPECT_EQ(run.wait_for_server(), 0) << point << " " << signal;
      expect_as_alone(run, std::string(point) + " " + signal);
    }
  }
}

/// Ends when the run ends or so many faults were provoked.
int storm(TrainingRun& run, int faults, uint64_t seed) {
  RandomStream random(seed, RandomUse::kSyntheticData, 1);
  int provoked = 0;
  while (run.server_runs() && provoked < faults) {
    size_t running = 0;
    for (size_t i = 0; i < run.workers(); ++i) running += run.worker_runs(i) ? 1 : 0;
    if (running < 3) run.start_worker();
    const size_t victim = random.below(static_cast<uint32_t>(run.workers()));
    const bool kill = random.below(3) != 0;
    if (run.signal_worker(victim, kill ? SIGKILL : SIGSTOP)) {
      ++provoked;
      if (!kill && random.below(2) == 0) run.signal_worker(victim, SIGCONT);
    }
    ::usleep(20'000 + random.below(60'000));
  }
  return provoked;
}

TEST(Equality, AStormOfKillsStopsAndRestartsChangesNothing) {
  const bool long_run = std::getenv("LONG") != nullptr;
  const int faults = long_run ? 200 : 30;
  const JobText job{.cut = "relu2", .share = 75, .steps = long_run ? 1200 : 150};
  const auto truth = train({.steps = job.steps}, 0);
  TrainingRun run(job);
  run.start_server();
  const int provoked = storm(run, faults, 11);
  EXPECT_EQ(run.wait_for_server(300), 0);
  EXPECT_EQ(run.weights(), truth->weights());
  EXPECT_EQ(run.audit(), truth->audit());
  EXPECT_GE(provoked, long_run ? 200 : 10);
  RecordProperty("faults", provoked);
}

TEST(Equality, AServerKilledAtARandomMomentAndResumedGivesTheUninterruptedRun) {
  RandomStream random(5, RandomUse::kSyntheticData, 2);
  const JobText job{.cut = "relu2", .share = 75, .steps = 40, .checkpoint_every = 4};
  const auto truth = train(job, 0);
  for (int round = 0; round < 3; ++round) {
    TrainingRun run(job);
    run.start_server();
    for (int i = 0; i <= round; ++i) run.start_worker();
    for (int kills = 0; kills < 2; ++kills) {
      run.wait_for_step(6 + static_cast<int64_t>(random.below(12)) + 10 * kills);
      run.signal_server(SIGKILL);
      run.wait_for_server();
      run.start_server(true);
      if (kills == 0) run.start_worker();
    }
    EXPECT_EQ(run.wait_for_server(), 0);
    EXPECT_EQ(run.weights(), truth->weights()) << "round " << round;
    EXPECT_EQ(run.audit(), truth->audit()) << "round " << round;
  }
}

TEST(Equality, SigtermWritesACheckpointAndTheResumedRunIsTheUninterruptedOne) {
  const JobText job{.cut = "relu1", .share = 100, .steps = 60};
  const auto truth = train(job, 0);
  TrainingRun run(job);
  run.start_server();
  run.start_worker();
  run.wait_for_step(5);
  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20) << "the exit code of a stop with a checkpoint";
  EXPECT_NE(run.weights(), "none");
  run.start_server(true);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(run.weights(), truth->weights());
}

TEST(Equality, WithStalenessWorkersDoNotMatterEither) {
  const JobText job{.cut = "relu2", .share = 100, .staleness = 1};
  const auto truth = train(job, 0);
  EXPECT_EQ(train(job, 3)->weights(), truth->weights());
  EXPECT_NE(truth->weights(), alone().weights());
}

}  // namespace
}  // namespace outrigger::integration
