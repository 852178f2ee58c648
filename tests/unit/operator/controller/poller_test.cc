#include "operator/controller/poller.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <latch>

#include "common/error.h"
#include "common/tcp.h"
#include "http/client.h"
#include "tests/fakes/fake_timer.h"

namespace outrigger::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A period with the most of its jitter, and with the least, by the beat before.
constexpr seconds kLongestWait{12};
constexpr seconds kShortestWait{7};
constexpr seconds kLongestSilence{60};
constexpr const char* kPage = R"({"progress": {"step": 1}})";

/// One thread that asks one server, every ten seconds of a time that stands.
class PollerTest : public testing::Test {
 protected:
  PollerTest()
      : metrics_(registry_),
        poller_(
            {.threads = 1,
             .ask = [this](const std::string&,
                           const std::stop_token&) -> std::optional<std::string> {
               ++asked_;
               if (silent_ && !refuses_) timer_.advance(seconds(2));
               return silent_ || refuses_ ? std::nullopt : std::optional<std::string>(kPage);
             },
             .tell = [this](const std::string&, const Edit& edit,
                            const std::stop_token&) { told_.push_back(edit.ip + " " + edit.body); },
             .timer = &timer_},
            metrics_, [this](const std::string&, const ServerReport&) { return edit_; }) {
    poller_.start();
  }
  // What was due is done then, and the thread waits for its next time.
  bool rests(seconds wait = kLongestWait) { return timer_.wait_for_sleepers(1, wait); }
  // The server is asked once, not before `least` and by `most`, and how the thread rests after it.
  void expect_asked_between(seconds least, seconds most, seconds next) {
    const int before = asked_;
    ASSERT_TRUE(rests(most));
    timer_.advance(least);
    ASSERT_TRUE(rests(most - least));
    EXPECT_EQ(asked_, before) << "within " << least.count() << " s";
    timer_.advance(most - least);
    ASSERT_TRUE(rests(next));
    EXPECT_EQ(asked_, before + 1) << "within " << most.count() << " s";
  }

  fakes::FakeTimer timer_;
  telemetry::Metrics registry_;
  ControllerMetrics metrics_;
  std::optional<Edit> edit_;  // set before the first time
  std::atomic<int> asked_ = 0;
  std::atomic<bool> silent_ = false;
  std::atomic<bool> refuses_ = false;
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

TEST_F(PollerTest, AServerThatDoesNotAnswerIsAskedMoreAndMoreSeldomUntilItDoes) {
  silent_ = true;
  poller_.watch("team/faces", "10.0.0.1");
  expect_asked_between(kShortestWait, kLongestWait, kLongestSilence);
  expect_asked_between(kShortestWait, kLongestWait, kLongestSilence);
  expect_asked_between(seconds(15), seconds(24), kLongestSilence);
  expect_asked_between(seconds(31), seconds(48), kLongestSilence);
  for (int i = 0; i < 3; ++i) expect_asked_between(seconds(39), seconds(60), kLongestSilence);
  silent_ = false;
  expect_asked_between(seconds(39), seconds(60), kLongestWait);
  expect_asked_between(kShortestWait, kLongestWait, kLongestWait);
}

TEST_F(PollerTest, AServerThatRefusesAsWhileItStartsIsAskedOnceAPeriod) {
  refuses_ = true;
  poller_.watch("team/faces", "10.0.0.1");
  for (int i = 0; i < 6; ++i) expect_asked_between(kShortestWait, kLongestWait, kLongestWait);
}

TEST_F(PollerTest, ASilentServersWaitIsNotCutShortByALookAtItsJobButByAnotherAddress) {
  silent_ = true;
  poller_.watch("team/faces", "10.0.0.1");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(rests(kLongestSilence));
    timer_.advance(kLongestSilence);
  }
  ASSERT_TRUE(rests(kLongestSilence));
  ASSERT_EQ(asked_, 5);
  poller_.watch("team/faces", "10.0.0.1");
  timer_.advance(kLongestWait);
  ASSERT_TRUE(rests(kLongestSilence));
  EXPECT_EQ(asked_, 5);
  silent_ = false;
  poller_.watch("team/faces", "10.0.0.2");
  expect_asked_between(kShortestWait, kLongestWait, kLongestWait);
  expect_asked_between(kShortestWait, kLongestWait, kLongestWait);
}

TEST_F(PollerTest, ItsQueueIsObserved) {
  poller_.watch("team/faces", "10.0.0.1");
  ASSERT_TRUE(rests());
  timer_.advance(kLongestWait);
  ASSERT_TRUE(rests());
  poller_.tell_of_work();
  const std::string page = registry_.exposition();
  EXPECT_THAT(page, HasSubstr("workqueue_adds_total{name=\"status\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("workqueue_unfinished_work_seconds{name=\"status\"} 0\n"));
}

// One thread, to which each silent server costs two seconds, and waiting nothing: with a hundred of
// them it never rests.
TEST(Poller, AHundredSilentServersCostOneThatAnswersNoMoreThanOneQuestion) {
  constexpr int kSilent = 100;
  constexpr int kAnswers = 100;
  fakes::FakeTimer timer(fakes::FakeTimer::Waiting::kJump);
  telemetry::Metrics registry;
  ControllerMetrics metrics(registry);
  std::latch answered(kAnswers);
  std::vector<TimePoint> answers;  // of the poller's thread
  int silences = 0;
  PollerOptions options;
  options.threads = 1;
  options.timer = &timer;
  options.ask = [&](const std::string& ip, const std::stop_token&) -> std::optional<std::string> {
    if (ip == "answers") {
      answers.push_back(timer.now());
      if (answers.size() <= kAnswers) answered.count_down();
      return kPage;
    }
    timer.advance(seconds(2));
    ++silences;
    return std::nullopt;
  };
  Poller poller(options, metrics,
                [](const std::string&, const ServerReport&) { return std::optional<Edit>(); });
  for (int i = 0; i < kSilent; ++i) poller.watch("team/" + std::to_string(i), std::to_string(i));
  poller.watch("team/answers", "answers");
  poller.start();
  answered.wait();
  poller.stop();
  EXPECT_GT(silences, 3 * kSilent) << "they are asked, too";
  // Those of the first period, in which nobody is known to be silent, come before.
  for (size_t i = 2; i < kAnswers; ++i)
    EXPECT_LE(answers[i] - answers[i - 1], kLongestWait + seconds(2)) << i;
}

// A server that takes connections and says nothing.
class SilentServer {
 public:
  SilentServer() {
    const auto address = tcp::resolve("127.0.0.1", 0, tcp::ResolveFor::kListening).front();
    socket_ = tcp::open_socket(address);
    const auto* any = reinterpret_cast<const sockaddr*>(&address.storage);  // NOLINT: POSIX's way
    if (::bind(socket_.get(), any, address.size) != 0 || ::listen(socket_.get(), 1) != 0)
      throw_errno("listen", errno);
  }
  std::string url() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size);  // NOLINT: POSIX's way
    return "http://127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  // Until somebody is connected.
  bool is_asked() const { return tcp::wait_for(socket_.get(), POLLIN, system_now() + seconds(20)); }

 private:
  FileDescriptor socket_;
};

TEST(Poller, StopsAtOnceThoughAServerDoesNotAnswer) {
  const SilentServer server;
  telemetry::Metrics registry;
  ControllerMetrics metrics(registry);
  PollerOptions options;
  options.period = std::chrono::milliseconds(20);
  options.ask = [&](const std::string&, const std::stop_token& stop) -> std::optional<std::string> {
    http::Client client({.base_url = server.url(), .timeout = seconds(30)});
    try {
      return client.send({"GET", "/status"}, stop).body;
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  Poller poller(options, metrics,
                [](const std::string&, const ServerReport&) { return std::optional<Edit>(); });
  poller.start();
  poller.watch("team/faces", "10.0.0.1");
  ASSERT_TRUE(server.is_asked());
  const TimePoint begin = system_now();
  poller.stop();
  EXPECT_LT(system_now() - begin, seconds(2)) << "the server would have cost thirty";
}

}  // namespace
}  // namespace outrigger::controller
