#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "tests/unit/training/checkpoint_fixture.h"

namespace outrigger::training {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

/// Runs `work` in a process of its own; what it returns is the exit status. Gives the status of
/// wait().
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

class CheckpointCrash : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    store().save(state_at(1), graph_);
    store().save_best(state_at(1), graph_);
  }

  /// After any crash: the newest checkpoint is the former or the new one, to the bit, and the next
  /// start tidies up. Returns its step.
  uint64_t expect_whole_after_crash(uint64_t former, uint64_t written) {
    const auto loaded = load_newest_checkpoint(directory(), graph_);
    if (!loaded) {
      ADD_FAILURE() << "no checkpoint is left";
      return 0;
    }
    EXPECT_TRUE(loaded->state.step == former || loaded->state.step == written)
        << loaded->state.step;
    EXPECT_TRUE(equal(loaded->state, state_at(loaded->state.step)));
    EXPECT_TRUE(equal(load_checkpoint(directory() / "best", graph_).state, state_at(1)));
    const CheckpointStore next(directory(), {});
    for (const std::string& name : entries()) EXPECT_FALSE(name.starts_with('.')) << name;
    return loaded->state.step;
  }
};

TEST_F(CheckpointCrash, AtAnyFaultPointLeavesTheFormerOrTheNewOneWhole) {
  std::vector<std::string> points;
  uint64_t newest = 1;
  bool finished = false;
  for (int survived = 0; !finished; ++survived) {
    const uint64_t written = newest + 1;
    const int status = in_child([&] {
      int left = survived;
      CheckpointStore crashing(directory(), {.keep = 1, .at_fault_point = [&](std::string_view) {
                                               if (left-- == 0) ::_exit(77);
                                             }});
      crashing.save(state_at(written), graph_);
      return 0;
    });
    ASSERT_TRUE(WIFEXITED(status));
    finished = WEXITSTATUS(status) == 0;
    newest = expect_whole_after_crash(newest, written);
    ASSERT_LT(survived, 100);
    if (finished) {
      EXPECT_GE(survived, 8);  // the directory, five files, the rename, the removal
    }
  }
}

TEST_F(CheckpointCrash, InTheMiddleOfAnyWriteLeavesTheFormerOneWhole) {
  // SIGXFSZ kills the child at the byte where a file would grow beyond the limit.
  const auto largest = fs::file_size(store().step_path(1) / "weights.safetensors");
  int killed = 0;
  for (rlim_t limit = 0; limit < largest + 4096; limit += 97) {
    const int status = in_child([&] {
      const rlimit small{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &small);
      store().save(state_at(2), graph_);
      return 0;
    });
    if (WIFSIGNALED(status)) {
      ++killed;
      EXPECT_EQ(expect_whole_after_crash(1, 1), 1u);
    } else {
      EXPECT_EQ(expect_whole_after_crash(2, 2), 2u);
    }
  }
  EXPECT_GE(killed, 10);
}

TEST_F(CheckpointCrash, ByKillsAtRandomMomentsLosesNothingThatWasFinished) {
  RandomStream random(9, RandomUse::kSyntheticData, 0);
  uint64_t newest = 1;
  for (int round = 0; round < 40; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      CheckpointStore running(directory(), {.keep = 2, .at_fault_point = [&](std::string_view) {
                                              if (::write(ends[1], "x", 1) != 1) ::_exit(1);
                                            }});
      for (uint64_t step = newest + 1;; ++step) running.save(state_at(step), graph_);
    }
    FileDescriptor heard(ends[0]);
    FileDescriptor(ends[1]).reset();
    char byte;
    for (uint32_t left = 1 + random.below(30); left > 0; --left)
      ASSERT_EQ(::read(heard.get(), &byte, 1), 1);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto loaded = load_newest_checkpoint(directory(), graph_);
    ASSERT_TRUE(loaded.has_value());
    EXPECT_GE(loaded->state.step, newest);
    EXPECT_TRUE(equal(loaded->state, state_at(loaded->state.step)));
    newest = loaded->state.step;
  }
  EXPECT_GT(newest, 40u);
}

/// Fills the disk for all writes of this process, by a limit on the size of files, until it goes
/// out of scope.
class FullDisk {
 public:
  explicit FullDisk(rlim_t limit) {
    ::getrlimit(RLIMIT_FSIZE, &former_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);  // so that write() fails instead of killing
    const rlimit small{limit, former_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit former_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(CheckpointCrash, ByADiskThatIsFullSaysSoAndLeavesTheFormerOnes) {
  for (const rlim_t limit : {0, 100, 300, 700}) {
    try {
      const FullDisk full(limit);
      store().save(state_at(2), graph_);
      FAIL() << "a checkpoint was written in " << limit << " bytes";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr("checkpoint of step 2 could not be written"));
      EXPECT_THAT(error.what(), HasSubstr("writing "));
      EXPECT_THAT(error.what(), HasSubstr("too large"));
    }
    EXPECT_THAT(entries(), ElementsAre("attempt", "best", "step-1"));
  }
  store().save(state_at(2), graph_);
  EXPECT_EQ(store().load_newest(graph_)->state.step, 2u);
}

constexpr int kNotPermitted = 99;

/// In a mount namespace of this process alone: a file system of `kibibytes` at `at`. False where
/// not permitted.
bool mount_small(const fs::path& at, int kibibytes) {
  const bool alone = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  if (!alone || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  const std::string options = "size=" + std::to_string(kibibytes) + "k";
  return ::mount("small", at.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

TEST_F(CheckpointCrash, ByAFileSystemWithoutSpaceLeavesTheFormerOnes) {
  const int status = in_child([&] {
    if (!mount_small(directory(), 64)) return kNotPermitted;
    CheckpointStore small(directory(), {.keep = 100});
    uint64_t step = 1;
    try {
      for (; step < 100; ++step) small.save(state_at(step), graph_);
      return 1;
    } catch (const IoError& error) {
      if (std::string(error.what()).find("No space left") == std::string::npos) return 2;
    }
    if (step < 2) return 3;
    if (entries().size() != step) return 4;  // "attempt" and step - 1 checkpoints
    return equal(small.load_newest(graph_)->state, state_at(step - 1)) ? 0 : 5;
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotPermitted)
    GTEST_SKIP() << "mounting a small file system is not permitted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace outrigger::training
