#include "common/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/error.h"

namespace outrigger {
namespace {

class ThreadPoolOfSize : public testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};

TEST_P(ThreadPoolOfSize, RunsEveryTaskOnce) {
  for (const int count : {0, 1, 2, 3, 7, 100}) {
    std::vector<int> runs(static_cast<size_t>(count));
    pool_.parallel_for(count, [&](int i) { ++runs[static_cast<size_t>(i)]; });
    EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(count), 1));
  }
}

// The memory a task writes is not atomic: TSan sees it if a loop returns before its tasks are done.
TEST_P(ThreadPoolOfSize, AThousandLoopsSeeEachOthersResults) {
  std::vector<int64_t> values(16);
  for (int loop = 0; loop < 1000; ++loop) {
    pool_.parallel_for(16, [&](int i) {
      values[static_cast<size_t>(i)] += values[static_cast<size_t>(i)] % 2 + 1;
    });
    const int64_t sum = std::accumulate(values.begin(), values.end(), int64_t{0});
    ASSERT_EQ(sum, 16 * values[0]);
  }
}

TEST_P(ThreadPoolOfSize, ThrowsTheFirstExceptionAfterAllTasksHaveEnded) {
  std::atomic<int> ended = 0;
  const auto loop = [&] {
    pool_.parallel_for(20, [&](int i) {
      ++ended;
      if (i % 5 == 3) throw std::runtime_error("task failed");
    });
  };
  EXPECT_THAT(loop, testing::ThrowsMessage<std::runtime_error>("task failed"));
  EXPECT_EQ(ended, 20);
}

TEST_P(ThreadPoolOfSize, WorksAgainAfterAnException) {
  EXPECT_THROW(pool_.parallel_for(4, [](int) { throw 1; }), int);
  std::atomic<int> ended = 0;
  EXPECT_NO_THROW(pool_.parallel_for(4, [&](int) { ++ended; }));
  EXPECT_EQ(ended, 4);
}

TEST_P(ThreadPoolOfSize, LoopsOfSeveralCallersDoNotMix) {
  constexpr int kCallers = 3;
  std::vector<int> sums(kCallers);
  std::atomic<int> at_once = 0;
  std::atomic<bool> mixed = false;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&, caller] {
        for (int loop = 0; loop < 100; ++loop) {
          std::atomic<int> done = 0;
          pool_.parallel_for(5, [&](int) {
            if (at_once.fetch_add(1) >= pool_.size()) mixed = true;
            ++done;
            at_once.fetch_sub(1);
          });
          sums[static_cast<size_t>(caller)] += done;
        }
      });
    }
  }
  EXPECT_EQ(sums, std::vector<int>(kCallers, 500));
  EXPECT_FALSE(mixed);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolOfSize, testing::Values(1, 2, 3, 8),
                         testing::PrintToStringParamName());

TEST(ThreadPool, ThreadsThatSleepAreWokenForALoop) {
  ThreadPool pool(2);
  // Each task waits for the other, so the loop ends only if a second thread takes part.
  for (int loop = 0; loop < 20; ++loop) {
    std::atomic<int> arrived = 0;
    pool.parallel_for(2, [&](int) {
      arrived.fetch_add(1);
      arrived.notify_all();
      for (int seen = arrived; seen < 2; seen = arrived) arrived.wait(seen);
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(ThreadPool, ItsOwnThreadsDoWhatIsThereBetweenLoops) {
  ThreadPool pool(3);
  std::atomic<int> left = 1000;
  std::atomic<bool> by_caller = false;
  const auto caller = std::this_thread::get_id();
  pool.set_idle_work([&] {
    if (std::this_thread::get_id() == caller) by_caller = true;
    const bool any = left.fetch_sub(1) > 0;
    left.notify_all();
    return any;
  });
  const auto wait_for_all = [&] {
    for (int seen = left; seen > 0; seen = left) left.wait(seen);
  };
  for (int loop = 0; loop < 100; ++loop) {
    std::atomic<int> ended = 0;
    pool.parallel_for(5, [&](int) { ++ended; });
    EXPECT_EQ(ended, 5);
  }
  wait_for_all();
  left = 20;
  pool.wake_idle();
  wait_for_all();
  pool.set_idle_work(nullptr);
  left = 20;
  pool.wake_idle();
  pool.parallel_for(3, [](int) {});
  EXPECT_EQ(left, 20) << "there is none any more";
  EXPECT_FALSE(by_caller);
}

TEST(ThreadPool, ItsOwnThreadsBeginWithNothingElseWhereThatIsNotAllowed) {
  ThreadPool pool(3);
  pool.allow_idle_work(false);
  std::atomic<int> begun = 0;
  pool.set_idle_work([&] {
    ++begun;
    begun.notify_all();
    return false;
  });
  for (int loop = 0; loop < 100; ++loop) pool.parallel_for(3, [](int) {});
  pool.wake_idle();
  pool.parallel_for(3, [](int) {});
  EXPECT_EQ(begun, 0);
  pool.allow_idle_work(true);
  begun.wait(0);
  pool.set_idle_work(nullptr);
}

TEST(ThreadPool, ALoopWaitsForNobodyWhoIsAtSomethingElse) {
  ThreadPool pool(2);
  std::atomic<int> begun = 0;
  std::atomic<bool> may_end = false;
  pool.set_idle_work([&] {
    if (begun.fetch_add(1) > 0) return false;
    begun.notify_all();
    may_end.wait(false);
    return true;
  });
  begun.wait(0);
  std::atomic<int> ended = 0;
  pool.parallel_for(7, [&](int) { ++ended; });
  EXPECT_EQ(ended, 7);
  may_end = true;
  may_end.notify_all();
  pool.set_idle_work(nullptr);
  EXPECT_GE(begun, 1);
}

TEST(ThreadPool, ATaskMayUseAnotherPool) {
  ThreadPool outer(2);
  ThreadPool inner(2);
  std::atomic<int> runs = 0;
  outer.parallel_for(3, [&](int) { inner.parallel_for(4, [&](int) { ++runs; }); });
  EXPECT_EQ(runs, 12);
}

/// From here on there is room for one more thread's stack, and not for two.
void leave_room_for_one_thread() {
  constexpr size_t kStack = size_t{512} << 20;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_setattr_default_np(&attributes);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + kStack + kStack / 2;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  ::setrlimit(RLIMIT_AS, &limit);
}

TEST(ThreadPoolDeathTest, WithoutItsThreadsItIsNotMade) {
  EXPECT_EXIT(
      {
        ::alarm(60);
        leave_room_for_one_thread();
        try {
          const ThreadPool pool(4);
        } catch (const IoError& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(0);
        }
      },
      testing::ExitedWithCode(0), "cannot start 4 threads");
}

TEST(ThreadPoolDeathTest, ATaskThatCallsBackIntoItsPoolAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        pool.parallel_for(2, [&](int) { pool.parallel_for(2, [](int) {}); });
      },
      "called back into its own thread pool");
}

TEST(AvailableCores, AreAtLeastOneAndAtMostTheMachines) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace outrigger
