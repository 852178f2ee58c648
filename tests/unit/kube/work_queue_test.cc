#include "kube/control/work_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "tests/fakes/fake_timer.h"

namespace outrigger::kube {
namespace {

using fakes::FakeTimer;
using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkQueueTest : public testing::Test {
 protected:
  static WorkQueueOptions with(const Timer& timer) {
    WorkQueueOptions options;
    options.timer = &timer;
    return options;
  }
  std::optional<std::string> take_and_finish() {
    auto key = queue_.take();
    if (key) queue_.done(*key);
    return key;
  }

  FakeTimer timer_{FakeTimer::Waiting::kJump};
  WorkQueue queue_{with(timer_)};
};

TEST_F(WorkQueueTest, GivesKeysInTheOrderOfTheirFirstAdd) {
  for (const char* key : {"a", "b", "a", "c", "b"}) queue_.add(key);
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(take_and_finish(), "b");
  EXPECT_EQ(take_and_finish(), "c");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(WorkQueueTest, AKeyAddedWhileItIsWorkedOnComesAgainAfterwards) {
  queue_.add("a");
  ASSERT_EQ(queue_.take(), "a");
  queue_.add("a");
  queue_.add("a");
  EXPECT_EQ(queue_.size(), 0u);
  queue_.done("a");
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(WorkQueueTest, ADelayedKeyComesAtItsTime) {
  const TimePoint start = timer_.now();
  queue_.add_after("late", seconds(20));
  queue_.add_after("early", seconds(10));
  queue_.add("now");
  EXPECT_EQ(take_and_finish(), "now");
  EXPECT_EQ(timer_.now() - start, seconds(0));
  EXPECT_EQ(take_and_finish(), "early");
  EXPECT_EQ(timer_.now() - start, seconds(10));
  EXPECT_EQ(take_and_finish(), "late");
  EXPECT_EQ(timer_.now() - start, seconds(20));
}

TEST_F(WorkQueueTest, OfTwoDelaysTheEarlierHolds) {
  const TimePoint start = timer_.now();
  queue_.add_after("a", seconds(20));
  queue_.add_after("a", seconds(5));
  queue_.add_after("a", seconds(30));
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(timer_.now() - start, seconds(5));
  queue_.shut_down();
  EXPECT_EQ(queue_.take(), std::nullopt);
}

TEST_F(WorkQueueTest, ADelayedKeyKeepsItsPriorityWhenALowOneComesEarlier) {
  queue_.add_after("a", seconds(5));
  queue_.add_after("a", seconds(2), Priority::kLow);
  queue_.add_after("other", seconds(5));
  timer_.advance(seconds(6));
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(take_and_finish(), "other");
  EXPECT_EQ(queue_.size(), 0u);
  // The low one alone is due: it comes at its time, and the other at its own.
  const TimePoint start = timer_.now();
  queue_.add_after("a", seconds(2), Priority::kLow);
  queue_.add_after("a", seconds(5));
  queue_.add_after("end", seconds(60));
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(timer_.now() - start, seconds(2));
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(timer_.now() - start, seconds(5));
}

TEST_F(WorkQueueTest, ALowDelayBehindANormalOneIsNoFurtherWork) {
  queue_.add_after("a", seconds(2));
  queue_.add_after("a", seconds(5), Priority::kLow);
  queue_.add_after("b", seconds(5), Priority::kLow);
  queue_.add_after("b", seconds(3));
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(take_and_finish(), "b");
  queue_.add_after("end", seconds(60));
  EXPECT_EQ(take_and_finish(), "end");
}

TEST_F(WorkQueueTest, LowPriorityComesWhenNothingElseIsReady) {
  queue_.add("low", Priority::kLow);
  queue_.add_after("due", seconds(1), Priority::kLow);
  queue_.add("a");
  queue_.add("b");
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(take_and_finish(), "b");
  EXPECT_EQ(take_and_finish(), "low");
  EXPECT_EQ(take_and_finish(), "due");
}

TEST_F(WorkQueueTest, AKeyHasTheHighestPriorityItWasAddedWith) {
  for (const char* key : {"low", "raised"}) queue_.add(key, Priority::kLow);
  queue_.add("a");
  queue_.add("raised");
  queue_.add("a", Priority::kLow);
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(take_and_finish(), "raised");
  EXPECT_EQ(take_and_finish(), "low");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(WorkQueueTest, AKeyThatIsWorkedOnComesAgainAtTheHighestPriority) {
  queue_.add("a");
  ASSERT_EQ(queue_.take(), "a");
  queue_.add("a", Priority::kLow);
  queue_.add("a");
  queue_.add("low", Priority::kLow);
  queue_.done("a");
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(take_and_finish(), "low");
}

TEST_F(WorkQueueTest, LowPriorityTakesOneTurnInFiveOnceItHasWaitedLong) {
  for (const char* key : {"low 1", "low 2"}) queue_.add(key, Priority::kLow);
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) queue_.add(key);
  timer_.advance(seconds(4));
  for (const char* key : {"a", "b", "c", "d", "e"}) EXPECT_EQ(take_and_finish(), key);
  timer_.advance(seconds(1));
  EXPECT_EQ(take_and_finish(), "low 1");
  for (const char* key : {"f", "g", "h", "i"}) EXPECT_EQ(take_and_finish(), key);
  EXPECT_EQ(take_and_finish(), "low 2");
  EXPECT_EQ(take_and_finish(), "j");
}

TEST_F(WorkQueueTest, AKeysWaitDoublesUntilItIsForgotten) {
  const auto wait_of = [&] {
    const TimePoint start = timer_.now();
    queue_.add_rate_limited("a");
    EXPECT_EQ(take_and_finish(), "a");
    return timer_.now() - start;
  };
  EXPECT_EQ(wait_of(), milliseconds(5));
  EXPECT_EQ(wait_of(), milliseconds(10));
  EXPECT_EQ(wait_of(), milliseconds(20));
  EXPECT_EQ(queue_.failures("a"), 3);
  for (int i = 0; i < 20; ++i) wait_of();
  EXPECT_EQ(wait_of(), seconds(300));
  queue_.forget("a");
  EXPECT_EQ(queue_.failures("a"), 0);
  EXPECT_EQ(wait_of(), milliseconds(5));
}

TEST_F(WorkQueueTest, AKeyWaitsAtLeastAsLongAsItIsToldAndItsOwnWaitDoublesMeanwhile) {
  const auto wait_of = [&](Duration at_least) {
    const TimePoint start = timer_.now();
    queue_.add_rate_limited("a", at_least);
    EXPECT_EQ(take_and_finish(), "a");
    return timer_.now() - start;
  };
  EXPECT_EQ(wait_of(seconds(40)), seconds(40));
  EXPECT_EQ(wait_of(milliseconds(1)), milliseconds(10));
  EXPECT_EQ(wait_of({}), milliseconds(20));
}

TEST_F(WorkQueueTest, AllKeysTogetherAreHeldToTheBucket) {
  WorkQueueOptions options = with(timer_);
  options.bucket = {.per_second = 1, .burst = 2};
  WorkQueue queue(options);
  const TimePoint start = timer_.now();
  for (int i = 0; i < 4; ++i) queue.add_rate_limited(std::to_string(i));
  for (int i = 0; i < 4; ++i) queue.done(queue.take().value());
  EXPECT_EQ(timer_.now() - start, seconds(2));
}

TEST_F(WorkQueueTest, ShutDownHandsOutWhatIsThereAndNothingElse) {
  queue_.add("a");
  queue_.add_after("later", seconds(1));
  queue_.shut_down();
  queue_.add("b");
  queue_.add_after("c", seconds(1));
  EXPECT_EQ(take_and_finish(), "a");
  EXPECT_EQ(queue_.take(), std::nullopt);
}

TEST(WorkQueue, AStopRequestWakesWhoWaits) {
  WorkQueue queue;
  std::optional<std::string> taken = "something";
  {
    std::jthread taker([&](const std::stop_token& stop) { taken = queue.take(stop); });
  }
  EXPECT_EQ(taken, std::nullopt);
}

TEST(WorkQueue, AnEarlierKeyWakesWhoWaitsForALaterOne) {
  FakeTimer timer;
  WorkQueueOptions options;
  options.timer = &timer;
  WorkQueue queue(options);
  queue.add_after("far", std::chrono::hours(1));
  std::optional<std::string> taken;
  std::jthread taker([&] { taken = queue.take(); });
  queue.add_after("near", seconds(1));
  timer.advance(seconds(1));
  taker.join();
  EXPECT_EQ(taken, "near");
}

// Each key counts up a number that only its worker touches: a race would show in the sum, and under
// TSan.
TEST(WorkQueue, NoKeyIsEverWorkedOnTwiceAtOnceAndNoAddIsLost) {
  constexpr int kKeys = 8;
  constexpr int kAdds = 2000;
  WorkQueue queue;
  std::vector<int> seen(kKeys);  // each written by its key's worker only
  std::vector<std::atomic<int>> added(kKeys);
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.take()) {
        const size_t index = std::stoul(*key);
        seen[index] = added[index].load();
        queue.done(*key);
      }
    });
  }
  {
    std::vector<std::jthread> adders;
    for (int i = 0; i < 2; ++i) {
      adders.emplace_back([&] {
        for (int n = 0; n < kAdds; ++n) {
          const int key = n % kKeys;
          ++added[static_cast<size_t>(key)];
          queue.add(std::to_string(key));
        }
      });
    }
  }
  queue.shut_down();
  workers.clear();
  for (size_t key = 0; key < kKeys; ++key) EXPECT_EQ(seen[key], 2 * kAdds / kKeys) << key;
}

class CountingObserver final : public Observer {
 public:
  void queue_added(const std::string& queue) override { ++counts[queue + " added"]; }
  void queue_retried(const std::string& queue) override { ++counts[queue + " retried"]; }
  void queue_depth(const std::string&, size_t keys) override { deepest = std::max(deepest, keys); }
  void queue_waited(const std::string&, Duration time) override { waited += time; }
  void queue_worked(const std::string&, Duration time) override { worked += time; }
  void queue_works(const std::string&, const Work& now) override { work = now; }

  std::map<std::string, int> counts;
  size_t deepest = 0;
  Duration waited{};
  Duration worked{};
  Work work;
};

TEST(WorkQueue, TellsItsObserver) {
  FakeTimer timer;
  CountingObserver observer;
  WorkQueueOptions options{.name = "jobs"};
  options.timer = &timer;
  options.observer = &observer;
  WorkQueue queue(options);
  queue.add("a");
  queue.add("a");
  queue.add("b");
  timer.advance(seconds(2));
  queue.take();
  timer.advance(seconds(3));
  queue.done("a");
  queue.add_rate_limited("a");
  EXPECT_EQ(observer.counts["jobs added"], 2);
  EXPECT_EQ(observer.counts["jobs retried"], 1);
  EXPECT_EQ(observer.deepest, 2u);
  EXPECT_EQ(observer.waited, seconds(2));
  EXPECT_EQ(observer.worked, seconds(3));
}

TEST(WorkQueue, TellsHowLongTheKeysThatAreWorkedOnHaveBeen) {
  FakeTimer timer;
  CountingObserver observer;
  WorkQueueOptions options;
  options.timer = &timer;
  options.observer = &observer;
  WorkQueue queue(options);
  const auto expect_work = [&](Duration unfinished, Duration longest) {
    queue.tell_of_work();
    EXPECT_EQ(observer.work.unfinished, unfinished);
    EXPECT_EQ(observer.work.longest, longest);
  };
  queue.add("a");
  queue.add("b");
  timer.advance(seconds(1));
  expect_work({}, {});
  queue.take();
  timer.advance(seconds(2));
  queue.take();
  timer.advance(seconds(3));
  expect_work(seconds(8), seconds(5));
  queue.done("a");
  expect_work(seconds(3), seconds(3));
  queue.done("b");
  expect_work({}, {});
}

}  // namespace
}  // namespace outrigger::kube
