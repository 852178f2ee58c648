#include "training/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "common/file.h"
#include "common/hash.h"
#include "tests/unit/training/checkpoint_fixture.h"

namespace outrigger::training {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST_F(CheckpointTest, GivesBackEveryBitOfTheState) {
  const TrainingState saved = state_at(12);
  store().save(saved, graph_, {{"model", "tiny"}});
  const auto loaded = store().load_newest(graph_);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(equal(loaded->state, saved));
  EXPECT_EQ(loaded->metadata, (CheckpointMetadata{{"model", "tiny"}}));
  EXPECT_EQ(loaded->path, directory() / "step-12");
}

TEST_F(CheckpointTest, LeavesOutWhatTheJobDoesNotUse) {
  TrainingState saved = state_at(12);
  saved.averaged.clear();
  saved.former_parameters.clear();
  saved.bad_samples.clear();
  saved.best_step = -1;
  store().save(saved, graph_);
  EXPECT_THAT(files_in("step-12"),
              ElementsAre("optimizer.safetensors", "state.json", "weights.safetensors"));
  EXPECT_TRUE(equal(store().load_newest(graph_)->state, saved));
}

TEST_F(CheckpointTest, KeepsWhatWasBeingEvaluated) {
  TrainingState saved = state_at(12);
  TrainingState evaluated = state_at(10, 1);
  evaluated.former_parameters.clear();
  saved.evaluating = std::make_shared<TrainingState>(evaluated);
  store().save(saved, graph_);
  EXPECT_TRUE(equal(store().load_newest(graph_)->state, saved));
  std::filesystem::remove(directory() / "step-12" / "evaluating" / "weights.safetensors");
  EXPECT_THROW(load_checkpoint(store().step_path(12), graph_), IoError);
}

TEST_F(CheckpointTest, IsNothingWhereNoneWasWritten) {
  EXPECT_FALSE(store().load_newest(graph_).has_value());
  EXPECT_FALSE(load_newest_checkpoint(directory() / "absent", graph_).has_value());
}

TEST_F(CheckpointTest, KeepsTheNewestAndTheBest) {
  CheckpointStore kept(directory(), {.keep = 2});
  kept.save_best(state_at(1), graph_);
  for (uint64_t step = 1; step <= 11; ++step) kept.save(state_at(step), graph_);
  EXPECT_THAT(kept.steps(), ElementsAre(10, 11));  // by number, not by name
  EXPECT_EQ(load_checkpoint(kept.best_path(), graph_).state.step, 1u);
  EXPECT_THAT(entries(), ElementsAre("attempt", "best", "step-10", "step-11"));
}

TEST_F(CheckpointTest, ReplacesTheBestAndAStepThatIsThereAlready) {
  store().save_best(state_at(1), graph_);
  store().save_best(state_at(5), graph_);
  EXPECT_EQ(load_checkpoint(store().best_path(), graph_).state.step, 5u);
  store().save(state_at(5, 1), graph_);
  store().save(state_at(5, 2), graph_);
  EXPECT_TRUE(equal(store().load_newest(graph_)->state, state_at(5, 2)));
  EXPECT_THAT(entries(), ElementsAre("attempt", "best", "step-5"));
}

TEST_F(CheckpointTest, RefusesToKeepNone) {
  EXPECT_THROW(CheckpointStore(directory(), {.keep = 0}), InvalidInput);
}

class DamagedCheckpoint : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    store().save(state_at(1), graph_);
    store().save(state_at(2), graph_);
  }

  /// The former checkpoint is used, and a warning and the error of a direct load both name `file`.
  void expect_former_is_used(const std::string& file) {
    testing::internal::CaptureStderr();
    const auto loaded = store().load_newest(graph_);
    const std::string warning = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(loaded.has_value()) << file;
    EXPECT_TRUE(equal(loaded->state, state_at(1)));
    EXPECT_THAT(warning, HasSubstr(file));
    try {
      load_checkpoint(store().step_path(2), graph_);
      FAIL() << "a damaged " << file << " passed";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file));
    }
  }
};

TEST_F(DamagedCheckpoint, IsRecognisedWhereverAFileIsCutShort) {
  for (const std::string& file : files_in("step-2")) {
    const fs::path path = store().step_path(2) / file;
    const std::string whole = read_file(path);
    for (const size_t size : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 1}) {
      SCOPED_TRACE(file + " cut to " + std::to_string(size));
      fs::resize_file(path, size);
      expect_former_is_used(file);
      std::ofstream(path, std::ios::binary) << whole;
    }
  }
  EXPECT_EQ(store().load_newest(graph_)->state.step, 2u);
}

TEST_F(DamagedCheckpoint, IsRecognisedByOneChangedByte) {
  for (const std::string& file : files_in("step-2")) {
    const fs::path path = store().step_path(2) / file;
    const std::string whole = read_file(path);
    for (const size_t place : {size_t{0}, whole.size() / 3, whole.size() - 2}) {
      SCOPED_TRACE(file + " changed at " + std::to_string(place));
      std::string changed = whole;
      changed[place] = static_cast<char>(changed[place] ^ 1);
      std::ofstream(path, std::ios::binary) << changed;
      expect_former_is_used(file);
    }
    std::ofstream(path, std::ios::binary) << whole;
  }
}

TEST_F(DamagedCheckpoint, IsRecognisedByAMissingFile) {
  for (const std::string& file : files_in("step-2")) {
    const fs::path path = store().step_path(2) / file;
    fs::rename(path, directory() / "aside");
    expect_former_is_used(file);
    fs::rename(directory() / "aside", path);
  }
}

TEST_F(DamagedCheckpoint, IsNoReasonToBeginAnewWhereAllAreDamaged) {
  for (const uint64_t step : {1u, 2u}) fs::remove(store().step_path(step) / "state.json");
  try {
    store().load_newest(graph_);
    FAIL() << "a run would begin anew";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr(directory().string()));
    EXPECT_THAT(error.what(), HasSubstr("step-2 has no state.json"));
    EXPECT_THAT(error.what(), HasSubstr("to begin anew"));
  }
}

TEST_F(CheckpointTest, IsNotTakenForAbsentWhereItsDirectoryCannotBeListed) {
  const fs::path file = directory() / "a-file";
  std::ofstream(file) << "no directory";
  EXPECT_THROW(load_newest_checkpoint(file, graph_), IoError);
}

TEST_F(DamagedCheckpoint, NeitherCountsNorIsTouchedWhileTheRunIsBehindIt) {
  fs::remove(store().step_path(2) / "state.json");
  fs::rename(store().step_path(2), store().step_path(9));
  CheckpointStore kept(directory(), {.keep = 1});
  kept.save(state_at(3), graph_);
  EXPECT_THAT(kept.steps(), ElementsAre(3, 9));
  EXPECT_EQ(kept.load_newest(graph_)->state.step, 3u);
  kept.save(state_at(9), graph_);
  EXPECT_THAT(kept.steps(), ElementsAre(9));
  EXPECT_EQ(kept.load_newest(graph_)->state.step, 9u);
}

TEST_F(DamagedCheckpoint, TakesNoGoodOnesPlaceBehindIt) {
  CheckpointStore kept(directory(), {.keep = 2});
  fs::remove(store().step_path(2) / "state.json");
  EXPECT_EQ(kept.load_newest(graph_)->state.step, 1u);
  kept.save(state_at(3), graph_);
  EXPECT_THAT(kept.steps(), ElementsAre(1, 3));
  kept.save(state_at(4), graph_);
  EXPECT_THAT(kept.steps(), ElementsAre(3, 4));
}

TEST_F(DamagedCheckpoint, CountsAgainOnceItIsReplaced) {
  CheckpointStore kept(directory(), {.keep = 2});
  fs::remove(store().step_path(2) / "state.json");
  kept.load_newest(graph_);
  kept.save(state_at(2), graph_);
  kept.save(state_at(3), graph_);
  EXPECT_THAT(kept.steps(), ElementsAre(2, 3));
}

/// The most memory that this process has taken so far.
size_t most_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

TEST_F(CheckpointTest, IsVerifiedInLessMemoryThanItsFilesTake) {
  constexpr size_t kLarge = size_t{256} << 20;
  store().save(state_at(1), graph_);
  const fs::path large = store().step_path(1) / "large";
  std::ofstream(large).close();
  fs::resize_file(large, kLarge);
  rewrite_manifest(1, [&](nlohmann::json& manifest) {
    manifest["files"]["large"] = {{"bytes", kLarge}, {"sha256", "of something else"}};
  });
  const size_t before = most_memory();
  EXPECT_THROW(load_checkpoint(store().step_path(1), graph_), IoError);
  EXPECT_LT(most_memory(), before + kLarge / 4);
}

TEST_F(CheckpointTest, OfAnotherModelIsRefusedByTheNameOfTheTensor) {
  store().save(state_at(1), graph_);
  try {
    store().load_newest(make_graph(11));
    FAIL() << "another model's checkpoint was taken";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("fc.weight"));
  }
}

TEST_F(CheckpointTest, OfALaterFormatIsRefusedAndNotPassedOver) {
  store().save(state_at(1), graph_);
  store().save(state_at(2), graph_);
  rewrite_manifest(2, [](nlohmann::json& manifest) { manifest["format"] = 2; });
  EXPECT_THROW(store().load_newest(graph_), InvalidInput);
}

TEST_F(CheckpointTest, WithoutAPlanOrWithOneOfAnotherFormIsWhole) {
  const nlohmann::json of_another_form{{"cut", 3}, {"stemsAway", -1}};
  store().save(state_at(1), graph_);
  TrainingState expected = state_at(1);
  expected.plan.reset();
  rewrite_manifest(1, [](nlohmann::json& manifest) { manifest.erase("plan"); });
  EXPECT_TRUE(equal(store().load_newest(graph_)->state, expected));
  for (const nlohmann::json& plan : {of_another_form, nlohmann::json("layer1")}) {
    rewrite_manifest(1, [&](nlohmann::json& manifest) { manifest["plan"] = plan; });
    EXPECT_TRUE(equal(store().load_newest(graph_)->state, expected));
  }
}

TEST_F(CheckpointTest, OfAnEarlierAttemptIsRefusedBeforeItIsRenamed) {
  CheckpointStore earlier(directory(), {.attempt = 1});
  earlier.save(state_at(1), graph_);
  CheckpointStore later(directory(), {.attempt = 2});
  EXPECT_THROW(earlier.save(state_at(2), graph_), Superseded);
  EXPECT_THROW(earlier.save_best(state_at(2), graph_), Superseded);
  EXPECT_THAT(
      [&] { CheckpointStore(directory(), {.attempt = 1}); },
      ThrowsMessage<Superseded>(HasSubstr((directory() / "attempt").string() + " may be removed")));
  EXPECT_THAT(entries(), ElementsAre("attempt", "step-1"));
  later.save(state_at(2), graph_);
  EXPECT_THAT(later.steps(), ElementsAre(1, 2));
}

TEST_F(CheckpointTest, ClaimedInTheMiddleOfASaveIsLeftToTheLaterAttempt) {
  CheckpointStore earlier(directory(), {.attempt = 1, .at_fault_point = [&](std::string_view at) {
                                          if (at == "wrote state.json")
                                            CheckpointStore(directory(), {.attempt = 2});
                                        }});
  EXPECT_THROW(earlier.save(state_at(1), graph_), Superseded);
  EXPECT_THAT(entries(), ElementsAre("attempt"));
}

TEST_F(CheckpointTest, RemovesWhatACrashLeftWhenTheNextRunStarts) {
  store().save(state_at(1), graph_);
  fs::copy(store().step_path(1), directory() / ".step-2.0123456789abcdef",
           fs::copy_options::recursive);
  fs::create_directory(directory() / ".step-0.removed");
  const CheckpointStore next(directory(), {});
  EXPECT_THAT(entries(), ElementsAre("attempt", "step-1"));
}

}  // namespace
}  // namespace outrigger::training
