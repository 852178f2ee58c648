#include "operator/controller/poller.h"

#include <gmock/gmock.h>

#include <atomic>

#include "tests/fakes/fake_timer.h"

namespace outrigger::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// A period with the most of its jitter.
constexpr seconds kLongestWait{12};

/// One thread that asks one server, every ten seconds of a time that stands.
class PollerTest : public testing::Test {
 protected:
  PollerTest()
      : metrics_(registry_),
        poller_({.threads = 1,
                 .ask =
                     [this](const std::string&) {
                       ++asked_;
                       return std::optional<std::string>(R"({"progress": {"step": 1}})");
                     },
                 .tell = [this](const Edit& edit) { told_.push_back(edit.ip + " " + edit.body); },
                 .timer = &timer_},
                metrics_, [this](const std::string&, const ServerReport&) { return edit_; }) {
    poller_.start();
  }
  // What was due is done then, and the thread waits for its next time.
  bool rests() { return timer_.wait_for_sleepers(1, kLongestWait); }

  fakes::FakeTimer timer_;
  telemetry::Metrics registry_;
  ControllerMetrics metrics_;
  std::optional<Edit> edit_;  // set before the first time
  std::atomic<int> asked_ = 0;
  std::vector<std::string> told_;  // read at rest
  Poller poller_;
};

TEST_F(PollerTest, AServerIsAskedOnceAPeriod) {
  poller_.watch("team/faces", "10.0.0.1");
  for (int period = 1; period <= 3; ++period) {
    ASSERT_TRUE(rests());
    timer_.advance(kLongestWait);
    ASSERT_TRUE(rests());
    EXPECT_EQ(asked_, period);
  }
  EXPECT_THAT(told_, IsEmpty()) << "nobody edited the job";
}

// Each look at a job says again where its server is: an edit is one.
TEST_F(PollerTest, AJobThatIsLookedAtOftenIsAskedForNoMoreOften) {
  poller_.watch("team/faces", "10.0.0.1");
  ASSERT_TRUE(rests());
  for (int i = 0; i < 7; ++i) {
    timer_.advance(seconds(1));
    poller_.watch("team/faces", "10.0.0.1");
  }
  ASSERT_TRUE(rests());
  EXPECT_EQ(asked_, 0);
  timer_.advance(seconds(5));
  ASSERT_TRUE(rests());
  EXPECT_EQ(asked_, 1);
}

TEST_F(PollerTest, AServerIsToldOnceForEachPageThatShowsThatItShouldBe) {
  edit_ = Edit{"10.0.0.1", "token", "the job"};
  poller_.watch("team/faces", "10.0.0.1");
  ASSERT_TRUE(rests());
  timer_.advance(kLongestWait);
  ASSERT_TRUE(rests());
  EXPECT_THAT(told_, ElementsAre("10.0.0.1 the job"));
  timer_.advance(kLongestWait);
  ASSERT_TRUE(rests());
  EXPECT_THAT(told_, ElementsAre("10.0.0.1 the job", "10.0.0.1 the job"));
}

TEST_F(PollerTest, WhatIsForAnotherServerThanTheOneThatAnsweredIsToldToNeither) {
  edit_ = Edit{"10.0.0.2", "token", "the job"};
  poller_.watch("team/faces", "10.0.0.1");
  ASSERT_TRUE(rests());
  timer_.advance(kLongestWait);
  ASSERT_TRUE(rests());
  EXPECT_EQ(asked_, 1);
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace outrigger::controller
