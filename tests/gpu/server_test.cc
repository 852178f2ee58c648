#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "gpu.h"
#include "tests/integration/training/storm.h"

/// The main job with its server on the GPU, in real processes: workers and servers that die cost
/// time and nothing else. Arithmetic is not held to the bit here: stems run on cores or on the
/// device, and sums of chunks depend on what has come.
namespace outrigger::integration {
namespace {

constexpr double kTolerance = 0.02;  // of a loss, relative

class OnGpuServer : public nn::testing::OnGpu {
 protected:
  static void SetUpTestSuite() { ::setenv("OUTRIGGER_DEVICE", "cuda", 1); }
  static void TearDownTestSuite() { ::unsetenv("OUTRIGGER_DEVICE"); }
};

JobText job_with(const std::string& cut, int share) {
  return {.cut = cut, .share = share, .steps = 40, .checkpoint_every = 4};
}

double last_loss(const TrainingRun& run) {
  const auto steps = run.events("step");
  return steps.empty() ? NAN : steps.back().at("loss").get<double>();
}

void expect_agreement(const TrainingRun& run, const TrainingRun& truth) {
  EXPECT_EQ(run.audit(), truth.audit());
  EXPECT_NEAR(last_loss(run), last_loss(truth), kTolerance * last_loss(truth));
}

TEST_F(OnGpuServer, TrainsAsTheCpuDoes) {
  const JobText job = job_with("Input", 100);
  const auto on_gpu = train(job, 1);
  ::setenv("OUTRIGGER_DEVICE", "cpu", 1);
  const auto on_cpu = train(job, 0);
  ::setenv("OUTRIGGER_DEVICE", "cuda", 1);
  EXPECT_THAT(on_gpu->server_log(), testing::HasSubstr("the GPU runs"));
  expect_agreement(*on_gpu, *on_cpu);
}

TEST_F(OnGpuServer, WorkersThatDieInEveryStateCostNothing) {
  const JobText job = job_with("relu2", 75);
  const auto truth = train(job, 0);
  TrainingRun run({.cut = "relu2", .share = 75, .steps = 1'000'000, .checkpoint_every = 50});
  run.start_server();
  Storm storm(run,
              every_kind_at({"sent-hello", "got-lease", "sent-micro-batch", "got-gradient",
                             "got-committed", "any moment"}),
              7);
  storm.rage(30, std::chrono::seconds(240));
  ASSERT_TRUE(run.server_runs()) << run.server_log();
  EXPECT_THAT(storm.missing(), testing::IsEmpty());
  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20);
  const auto audit = run.audit();
  uint64_t slot = 0;
  for (const auto& [step, line] : audit) {
    EXPECT_EQ(line.first_slot, slot) << "step " << step;
    for (const auto& samples : line.samples) slot += samples.size();
  }
  for (const auto& [step, line] : truth->audit()) {
    if (!audit.contains(step)) continue;
    EXPECT_EQ(audit.at(step), line);
  }
}

TEST_F(OnGpuServer, AServerThatIsKilledGoesOnFromItsCheckpoint) {
  const JobText job = job_with("relu2", 75);
  const auto truth = train(job, 1);
  TrainingRun run(job);
  run.start_server();
  run.start_worker();
  for (const int step : {6, 22}) {
    run.wait_for_step(step);
    run.signal_server(SIGKILL);
    run.wait_for_server();
    run.start_server(true);
    run.start_worker();
  }
  EXPECT_EQ(run.wait_for_server(), 0) << run.server_log();
  expect_agreement(run, *truth);
}

TEST_F(OnGpuServer, FindsAPlanByItself) {
  JobText job = job_with("Auto", -1);
  job.steps = 100;
  const auto run = train(job, 2);
  EXPECT_THAT(run->server_log(), testing::HasSubstr("the GPU takes"));
  EXPECT_THAT(run->server_log(), testing::Not(testing::HasSubstr("no room to measure")));
  EXPECT_EQ(run->audit().size(), 100u);
}

}  // namespace
}  // namespace outrigger::integration
