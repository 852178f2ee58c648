#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "common/random.h"
#include "tests/integration/training/training_run.h"

/// Servers that die at any moment, in the middle of a checkpoint, or for want of space: the resumed
/// run is bitwise the uninterrupted one, with the same and another number of workers.
namespace outrigger::integration {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

const JobText kJob{.cut = "relu2", .share = 75, .steps = 40, .checkpoint_every = 4};

const TrainingRun& uninterrupted() {
  static const std::unique_ptr<TrainingRun> run = train(kJob, 0);
  return *run;
}

TEST(Resume, AServerKilledAtRandomMomentsGivesTheUninterruptedRun) {
  RandomStream random(5, RandomUse::kSyntheticData, 2);
  const int rounds = std::getenv("LONG") == nullptr ? 3 : 40;
  int in_mid_run = 0;
  for (int round = 0; round < rounds; ++round) {
    TrainingRun run(kJob);
    run.start_server();
    for (int i = 0; i <= round % 3; ++i) run.start_worker();
    for (int kills = 0; kills < 2; ++kills) {
      run.wait_for_step(static_cast<int64_t>(random.below(16)) + 16 * kills);
      std::this_thread::sleep_for(milliseconds(random.below(40)));  // anywhere in a step
      in_mid_run += run.server_runs() ? 1 : 0;
      run.signal_server(SIGKILL);
      run.wait_for_server();
      run.start_server(true);
      if (kills == 0) run.start_worker();
    }
    EXPECT_EQ(run.wait_for_server(), 0);
    expect_same_run(run, uninterrupted(), "round " + std::to_string(round));
  }
  EXPECT_GE(in_mid_run, rounds);
}

/// What a save that has not been finished is called: a hidden folder beside the checkpoints.
bool has_unfinished_save(const TrainingRun& run) {
  for (const auto& entry : fs::directory_iterator(run.directory())) {
    const std::string name = entry.path().filename();
    if (name.starts_with('.') && fs::is_directory(entry.path())) return true;
  }
  return false;
}

TEST(Resume, AServerKilledInTheMiddleOfACheckpointGoesOnFromTheFormerOne) {
  JobText job = kJob;
  job.checkpoint_every = 1;
  int caught = 0;
  for (int round = 0; round < 20 && caught < 2; ++round) {
    TrainingRun run(job);
    run.start_server();
    run.wait_for_step(6 + round);
    while (run.server_runs() && !has_unfinished_save(run)) ::usleep(100);
    run.signal_server(SIGKILL);
    run.wait_for_server();
    if (!has_unfinished_save(run)) continue;
    ++caught;
    run.start_server(true);
    EXPECT_EQ(run.wait_for_server(), 0);
    EXPECT_FALSE(has_unfinished_save(run));
    expect_same_run(run, uninterrupted(), "round " + std::to_string(round));
  }
  EXPECT_EQ(caught, 2) << "no save was caught in the middle";
}

TEST(Resume, ACheckpointThatWasCutShortIsNamedAndTheFormerOneUsed) {
  TrainingRun run(kJob);
  run.start_server();
  run.wait_for_step(14);
  run.signal_server(SIGKILL);
  run.wait_for_server();
  const auto steps = run.checkpoints();
  ASSERT_EQ(steps.size(), 2u);
  const auto newest = run.directory() / ("step-" + std::to_string(steps.back()));
  fs::resize_file(newest / "weights.safetensors", 1000);
  run.start_server(true);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_THAT(run.server_log(),
              testing::HasSubstr("weights.safetensors has 1000 bytes instead of"));
  EXPECT_THAT(
      run.server_log(),
      testing::HasSubstr("resuming from " +
                         (run.directory() / ("step-" + std::to_string(steps.front()))).string()));
  expect_same_run(run, uninterrupted(), "from the former one");
}

/// A file system of so many bytes at `at`, for this process and its children. False where not
/// permitted.
bool mount_small(const fs::path& at, uintmax_t bytes, bool again) {
  if (!again) {
    const bool alone = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!alone || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  }
  const std::string options = "size=" + std::to_string(bytes);
  return ::mount("small", at.c_str(), "tmpfs", again ? MS_REMOUNT : 0, options.c_str()) == 0;
}

uintmax_t bytes_below(const fs::path& folder) {
  uintmax_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    sum += entry.is_regular_file() ? (entry.file_size() + 4095) / 4096 * 4096 : 4096;
  return sum;
}

TEST(Resume, AFullDiskIsNamedAndTheRunGoesOnFromTheFormerCheckpointWhenThereIsSpace) {
  const uintmax_t one =
      bytes_below(uninterrupted().directory() / ("step-" + std::to_string(kJob.steps)));
  const TemporaryDirectory disk("outrigger-small-disk");
  if (!mount_small(disk.path(), one + one / 2, false))
    GTEST_SKIP() << "mounting a small file system is not permitted here";
  JobText job = kJob;
  job.checkpoint_path = disk.path();
  {
    TrainingRun run(job);
    run.start_server();
    EXPECT_EQ(run.wait_for_server(), 22);
    EXPECT_THAT(run.server_log(), testing::HasSubstr("checkpoint of step 8 could not be written"));
    EXPECT_THAT(run.server_log(), testing::HasSubstr("No space left on device"));
    EXPECT_THAT(run.checkpoints(), testing::ElementsAre(4));
    ASSERT_TRUE(mount_small(disk.path(), 10 * one, true));
    run.start_server(true);
    EXPECT_EQ(run.wait_for_server(), 0);
    EXPECT_THAT(run.server_log(), testing::HasSubstr("at step 4"));
    expect_same_run(run, uninterrupted(), "after the disk was full");
  }
  ::umount(disk.path().c_str());
}

/// Of workers and layers in the last step, and of the end.
void expect_last_lines(const TrainingRun& run, const std::string& state) {
  for (const char* type : {"workers", "layers"}) {
    ASSERT_FALSE(run.events(type).empty()) << type;
    EXPECT_EQ(run.events(type).back().at("step"), run.step()) << type;
  }
  ASSERT_FALSE(run.events("end").empty());
  EXPECT_EQ(run.events("end").back().at("state"), state);
  EXPECT_EQ(run.events("end").back().at("step"), run.step() + 1);
}

TEST(Resume, SigtermWritesACheckpointAndTheResumedRunIsTheUninterruptedOne) {
  TrainingRun run(kJob);
  run.start_server();
  run.start_worker();
  run.wait_for_step(5);
  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20) << "the exit code of a stop with a checkpoint";
  EXPECT_THAT(run.checkpoints(), testing::Contains(run.step() + 1));
  expect_last_lines(run, "Stopped");
  run.start_server(true);
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_same_run(run, uninterrupted(), "after SIGTERM");
  expect_last_lines(run, "Done");
}

TEST(Resume, ARunThatIsPastTheEndOfTheJobSaysSo) {
  TrainingRun run({.steps = 6});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 0);
  run.change_job({.steps = 4});
  run.start_server(true);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_THAT(run.server_log(),
              testing::HasSubstr("the run is at step 6 already, past the 4 that the job asks for"));
  EXPECT_THAT(run.server_log(), testing::Not(testing::HasSubstr("step 6/4")));
}

TEST(Resume, ATraceThatCannotBeWrittenMakesNoOtherEndOfARun) {
  TrainingRun run(kJob);
  fs::create_directories(run.directory() / "trace.json" / "in-the-way");
  run.start_server();
  run.wait_for_step(5);
  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20);
  run.start_server(true);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_THAT(run.server_log(), testing::HasSubstr("there is no trace of this run"));
}

/// Trains as `before` says for some steps, and as `after` says to the end.
void change_on_the_way(TrainingRun& run, const JobText& after) {
  run.start_server();
  run.wait_for_step(14);
  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20);
  run.change_job(after);
  run.start_server(true);
  EXPECT_EQ(run.wait_for_server(), 0) << run.server_log();
}

TEST(Resume, AnAverageOfWeightsMayBeginOrEndWithIt) {
  JobText averaging = kJob;
  averaging.more_training = "    averageWeights: 0.9\n";
  TrainingRun ending(averaging);
  change_on_the_way(ending, kJob);
  EXPECT_EQ(tensors(ending.directory() / "weights.safetensors"),
            tensors(uninterrupted().directory() / "weights.safetensors"));
  TrainingRun beginning(kJob);
  change_on_the_way(beginning, averaging);
  EXPECT_EQ(beginning.weights(), uninterrupted().weights()) << "those that are trained";
  EXPECT_NE(tensors(beginning.directory() / "weights.safetensors"),
            tensors(uninterrupted().directory() / "weights.safetensors"));
}

}  // namespace
}  // namespace outrigger::integration
