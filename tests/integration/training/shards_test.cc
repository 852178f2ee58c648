#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "tests/integration/training/training_run.h"

/// WebDataset: whole runs over tar shards in windowed order.
namespace outrigger::integration {
namespace {

constexpr size_t kImages = 84;

JobText sharded(const std::string& cut) {
  return {.cut = cut,
          .share = 75,
          .steps = 14,
          .checkpoint_every = 5,
          .more_data = "    shuffle: {window: 20}\n",
          .shards = true};
}

const TrainingRun& whole_run() {
  static const std::unique_ptr<TrainingRun> run = train(sharded("Input"), 0);
  return *run;
}

std::vector<uint32_t> order_of(const TrainingRun& run) {
  std::vector<uint32_t> order;
  for (const auto& step : run.audit()) {
    for (const auto& samples : step.second.samples)
      order.insert(order.end(), samples.begin(), samples.end());
  }
  return order;
}

TEST(Shards, ARunWithWorkersThatDieIsBitwiseTheLocalWorkerAlone) {
  TrainingRun run(sharded("relu2"));
  run.start_server();
  run.start_worker({.fault = "got-gradient:2:KILL"});
  run.start_worker({.fault = "sent-micro-batch:3:STOP"});
  run.start_worker();
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_same_run(run, whole_run(), "with workers");
}

TEST(Shards, AServerKilledInMidEpochAndResumedIsBitwiseTheUninterruptedRun) {
  TrainingRun run(sharded("relu2"));
  run.start_server();
  run.start_worker();
  run.wait_for_step(7);
  run.signal_server(SIGKILL);
  run.wait_for_server();
  run.start_server(true);
  run.start_worker();
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_same_run(run, whole_run(), "resumed");
}

TEST(Shards, EveryEpochTakesEverySampleOnceAndNoneFarFromItsShard) {
  const auto order = order_of(whole_run());
  ASSERT_GE(order.size(), 2 * kImages);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    const auto begin = order.begin() + static_cast<ptrdiff_t>(epoch * kImages);
    EXPECT_EQ((std::set<uint32_t>(begin, begin + kImages)).size(), kImages) << "epoch " << epoch;
  }
  // Five shards of 17 images or 16: what is drawn first comes out of the first window's shards.
  std::set<uint32_t> shards;
  for (size_t i = 0; i < 10; ++i) shards.insert(std::min(order[i] / 17, 4u));
  EXPECT_LE(shards.size(), 2u);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.begin() + kImages));
}

TEST(Shards, ATarCutShortBeforeTheRunIsNamedWithItsOffset) {
  JobText job = sharded("Input");
  job.copy_data = true;
  TrainingRun run(job);
  std::filesystem::resize_file(run.data() / "train" / "shard-2.tar", 20'000);
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 12);
  EXPECT_THAT(run.server_log(),
              testing::ContainsRegex("shard-2.tar: broken tar at offset [0-9]+: cut short"));
}

TEST(Shards, ATarCutShortInTheRunFailsItWithShardAndByteAndKeepsWhatWasDone) {
  JobText job = sharded("relu2");
  job.copy_data = true;
  job.steps = 100'000;
  job.more_spec = "  progressDeadlineSeconds: 20\n";
  TrainingRun run(job);
  run.start_server();
  run.start_worker();
  run.wait_for_step(6);
  std::filesystem::resize_file(run.data() / "train" / "shard-2.tar", 20'000);
  EXPECT_EQ(run.wait_for_server(180), 22);  // it tries for half of the progress deadline
  EXPECT_THAT(run.server_log(),
              testing::ContainsRegex("reading failed .*shard-2.tar is cut short: at offset [0-9]+ "
                                     "it has [0-9]+ of the [0-9]+ bytes"));
  EXPECT_THAT(run.checkpoints(), testing::Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace outrigger::integration
