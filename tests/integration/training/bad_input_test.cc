#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "tests/integration/training/training_run.h"

/// What processes say and how they end when something is wrong with what they were given.
namespace outrigger::integration {
namespace {

using ::testing::Test;

void expect_said(const std::string& log, const std::string& text) {
  EXPECT_NE(log.find(text), std::string::npos) << "not in:\n" << log;
}

TEST(BadInput, AnUnknownFieldIsNamedWithItsPlace) {
  TrainingRun run({.more_training = "    batchsize: 3\n"});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  expect_said(run.server_log(), "spec.training.batchsize");
  expect_said(run.server_log(), "batchSize");
}

TEST(BadInput, AnUnknownCutListsTheLegalOnes) {
  TrainingRun run({.cut = "relu9"});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  expect_said(run.server_log(), "relu9");
  expect_said(run.server_log(), "relu2");
}

TEST(BadInput, ALossThatIsNoNumberEndsTheRunAndKeepsTheLastGoodCheckpoint) {
  TrainingRun run({.steps = 200,
                   .checkpoint_every = 1,
                   .more_training = "    averageWeights: 0.9\n",
                   .rate = "100000.0"});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 13);
  expect_said(run.server_log(), "not a number at step");
  EXPECT_NE(run.weights(), "none");
}

TEST(BadInput, AWrongTokenIsRefusedAndTheWorkerSaysSo) {
  TrainingRun run({.steps = 4000});
  run.start_server();
  write_file_atomically(run.token_file(), "another token\n", 0600);
  run.start_worker();
  run.wait_for_worker(0);
  expect_said(run.worker_log(0), "token");
  EXPECT_TRUE(run.server_runs());
}

TEST(BadInput, APortInUseIsNamed) {
  TrainingRun first({.steps = 4000});
  first.start_server();
  TrainingRun second({.port = first.port()});
  second.start_server();
  EXPECT_EQ(second.wait_for_server(), 22);
  expect_said(second.server_log(), std::to_string(first.port()));
}

TEST(BadInput, AFormerRunIsNotOverwritten) {
  TrainingRun run({.steps = 3});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 0);
  const std::string weights = run.weights();
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  expect_said(run.server_log(), "--resume");
  EXPECT_EQ(run.weights(), weights);
}

TEST(BadInput, BrokenImagesAreReplacedListedAndTooManyFailTheRun) {
  TrainingRun run({.steps = 30, .broken_images = 2, .max_bad_fraction = "0.05"});
  run.start_server();
  run.start_worker();
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_said(run.server_log(), "is broken");
  TrainingRun strict({.steps = 30, .broken_images = 2, .max_bad_fraction = "0.01"});
  strict.start_server();
  EXPECT_EQ(strict.wait_for_server(), 12);
  expect_said(strict.server_log(), "maxBadFraction");
}

TEST(BadInput, AWorkerThatSeesOtherDataMayNotJoin) {
  TrainingRun run({.steps = 4000, .broken_images = 0, .copy_data = true});
  run.start_server();
  run.change_every_image();
  run.start_worker();
  run.wait_for_worker(0);
  expect_said(run.worker_log(0), "other data");
}

}  // namespace
}  // namespace outrigger::integration
