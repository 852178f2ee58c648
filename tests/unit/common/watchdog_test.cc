#include "common/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>

#include "tests/fakes/fake_clock.h"

namespace outrigger {
namespace {

using std::chrono::seconds;

/// A watchdog over a number and a clock that the test moves, and what it barked.
class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest()
      : watchdog_(
            {.startup = seconds(100),
             .progress = seconds(10),
             .stop = seconds(20),
             .look = std::chrono::milliseconds(1),
             .freeze = seconds(1000)},
            clock_,
            [this] {
              ++asked_;
              return progress_.load();
            },
            [this](const std::string& what) { barked_.set_value(what); }) {}

  /// Until the watchdog has looked twice more, so that it has seen the present state, or barked.
  void let_it_look() {
    const int before = asked_;
    while (asked_ < before + 2 && silent()) std::this_thread::yield();
  }
  bool silent() { return heard_.wait_for(seconds(0)) == std::future_status::timeout; }
  std::string bark() {
    if (heard_.wait_for(seconds(60)) != std::future_status::ready) return "nothing";
    return heard_.get();
  }

  fakes::FakeClock clock_;
  std::atomic<uint64_t> progress_{7};
  std::atomic<int> asked_{0};
  std::promise<std::string> barked_;
  std::future<std::string> heard_ = barked_.get_future();
  Watchdog watchdog_;
};

TEST_F(WatchdogTest, TheFirstProgressMayTakeAsLongAsTheStart) {
  clock_.advance(seconds(99));
  let_it_look();
  EXPECT_TRUE(silent());
  clock_.advance(seconds(1));
  EXPECT_EQ(bark(), "no first micro-batch within 100 s");
}

TEST_F(WatchdogTest, GoesByANewLimit) {
  ++progress_;
  let_it_look();
  watchdog_.set_progress_limit(seconds(30));
  clock_.advance(seconds(29));
  let_it_look();
  EXPECT_TRUE(silent());
  clock_.advance(seconds(1));
  EXPECT_EQ(bark(), "no progress within 30 s");
}

TEST_F(WatchdogTest, ProgressPutsTheDeadlineOff) {
  for (int i = 0; i < 5; ++i) {
    ++progress_;
    let_it_look();
    clock_.advance(seconds(9));
    let_it_look();
  }
  EXPECT_TRUE(silent());
  clock_.advance(seconds(1));
  EXPECT_EQ(bark(), "no progress within 10 s");
}

TEST_F(WatchdogTest, AStopThatDoesNotEndIsTold) {
  ++progress_;
  let_it_look();
  clock_.advance(seconds(9));
  watchdog_.expect_end();
  clock_.advance(seconds(19));
  let_it_look();
  EXPECT_TRUE(silent());
  ++progress_;  // says nothing about the end
  clock_.advance(seconds(1));
  EXPECT_EQ(bark(), "the run was asked to stop and did not within 20 s");
}

TEST_F(WatchdogTest, TimeInWhichTheProcessStoodStillDoesNotCount) {
  ++progress_;
  let_it_look();
  clock_.advance(seconds(5));
  let_it_look();
  clock_.advance(seconds(2000));
  let_it_look();
  clock_.advance(seconds(4));
  let_it_look();
  EXPECT_TRUE(silent());
  clock_.advance(seconds(1));
  EXPECT_EQ(bark(), "no progress within 10 s");
}

}  // namespace
}  // namespace outrigger
