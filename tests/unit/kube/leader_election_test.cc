#include "kube/control/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "common/error.h"
#include "kube/object/object.h"
#include "tests/fakes/api_server.h"
#include "tests/fakes/fake_timer.h"

namespace outrigger::kube {
namespace {

using fakes::FakeTimer;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = LeaderElection::Outcome;

const ObjectKey kLease{"system", "operator"};
// A retry's wait with the most jitter: once so much time has passed, another try has begun.
constexpr milliseconds kRetry{2401};

// A process that takes part.
class Candidate {
 public:
  Candidate(const fakes::ApiServer& server, const Timer& timer, const std::string& identity,
            bool release = true)
      : Candidate(
            server,
            {.lease = kLease, .identity = identity, .release_on_stop = release, .timer = &timer}) {}
  Candidate(const fakes::ApiServer& server, const LeaderElectionOptions& options)
      : election_(server.config(), options), timer_(*options.timer) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void stop() { thread_ = {}; }
  bool wait_to_lead() const {
    return wait_for([this] { return leads.load(); });
  }
  bool wait_to_stop_leading() const {
    return wait_for([this] { return !leads.load(); });
  }
  bool wait_to_lose() const {
    return wait_for([this] { return lost.load(); });
  }

  std::atomic<bool> leads = false;
  std::atomic<bool> lost = false;
  std::atomic<Duration::rep> lost_at = 0;
  std::optional<Outcome> outcome;  // after stop()

 private:
  void run(const std::stop_token& stop) {
    LeaderElection::Callbacks callbacks;
    callbacks.lead = [this](const std::stop_token& ended) {
      leads = true;
      std::mutex mutex;
      std::condition_variable_any never;
      std::unique_lock lock(mutex);
      never.wait(lock, ended, [] { return false; });
      leads = false;
    };
    callbacks.lost = [this] {
      lost_at = timer_.now().time_since_epoch().count();
      lost = true;
    };
    outcome = election_.run(stop, callbacks);
  }

  template <typename Condition>
  static bool wait_for(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  LeaderElection election_;
  const Timer& timer_;
  std::jthread thread_;
};

class LeaderElectionTest : public testing::Test {
 protected:
  // Every candidate has looked at the lease, or renewed it, and waits to do so again.
  void wait_for_looks(size_t candidates = 1) {
    ASSERT_TRUE(timer_.wait_for_sleepers(candidates, kRetry));
  }
  // Lets time pass in steps, in each of which every candidate looks at the lease once.
  void pass(Duration time, size_t candidates = 1) {
    for (; time > Duration::zero(); time -= kRetry) {
      wait_for_looks(candidates);
      timer_.advance(kRetry);
    }
    wait_for_looks(candidates);
  }
  LeaseRecord stored() { return read_lease(client_.get(kLeases, kLease).take()); }
  void write_as(const std::string& holder, const std::string& renew_time) {
    Json lease;
    const auto current = client_.get(kLeases, kLease);
    if (current) lease = *current;
    write_lease(lease, kLease, {holder, seconds(15), renew_time, renew_time, 3});
    ASSERT_TRUE(current ? client_.update(kLeases, lease) : client_.create(kLeases, lease));
  }

  fakes::ApiServer server_;
  FakeTimer timer_;
  Client client_{server_.config()};
};

TEST_F(LeaderElectionTest, TheFirstLeadsAndWritesWhoItIs) {
  Candidate a(server_, timer_, "a");
  ASSERT_TRUE(a.wait_to_lead());
  const LeaseRecord record = stored();
  EXPECT_EQ(record.holder, "a");
  EXPECT_EQ(record.duration, seconds(15));
  EXPECT_EQ(record.transitions, 0);
  EXPECT_TRUE(parse_time(record.renew_time));
}

TEST_F(LeaderElectionTest, TheLeaseThatItMakesBelongsToItsOwnersAsTheyAreThen) {
  std::string uid = "first";
  const auto make = [&](const std::string& identity) {
    return std::make_unique<Candidate>(
        server_,
        LeaderElectionOptions{
            .lease = kLease,
            .identity = identity,
            .owners =
                [&uid] {
                  return std::vector<OwnerReference>{{"v1", "ServiceAccount", "operator", uid}};
                },
            .timer = &timer_});
  };
  const auto owners = [&] {
    return client_.get(kLeases, kLease).take()["metadata"].value("ownerReferences", Json());
  };
  const auto owned_by = [](const std::string& of) {
    return Json::array(
        {{{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"name", "operator"}, {"uid", of}}});
  };
  auto a = make("a");
  ASSERT_TRUE(a->wait_to_lead());
  EXPECT_EQ(owners(), owned_by("first"));
  uid = "second";
  a.reset();
  auto b = make("b");
  ASSERT_TRUE(b->wait_to_lead());
  EXPECT_EQ(owners(), owned_by("first")) << "one that is there is left as it is";
  b.reset();
  ASSERT_TRUE(client_.remove(kLeases, kLease));
  auto c = make("c");
  ASSERT_TRUE(c->wait_to_lead());
  EXPECT_EQ(owners(), owned_by("second"));
}

TEST_F(LeaderElectionTest, ALeaseThatSomebodyDeletesIsMadeAgainByItsHolder) {
  Candidate a(server_, timer_, "a");
  ASSERT_TRUE(a.wait_to_lead());
  wait_for_looks();
  ASSERT_TRUE(client_.remove(kLeases, kLease));
  pass(kRetry);
  EXPECT_EQ(stored().holder, "a");
  EXPECT_FALSE(a.lost);
}

TEST_F(LeaderElectionTest, ALeaderRenewsAndTheOthersWait) {
  Candidate a(server_, timer_, "a");
  ASSERT_TRUE(a.wait_to_lead());
  Candidate b(server_, timer_, "b");
  pass(seconds(60), 2);
  EXPECT_TRUE(a.leads);
  EXPECT_FALSE(a.lost);
  EXPECT_FALSE(b.leads);
  EXPECT_GE(server_.requests("PUT").size(), 20u);
}

TEST_F(LeaderElectionTest, AStoppedLeaderGivesTheLeaseBackAndASuccessorTakesItAtItsNextLook) {
  Candidate a(server_, timer_, "a");
  ASSERT_TRUE(a.wait_to_lead());
  Candidate b(server_, timer_, "b");
  wait_for_looks(2);
  a.stop();
  EXPECT_EQ(a.outcome, Outcome::kStopped);
  EXPECT_EQ(stored().holder, "");
  wait_for_looks();
  timer_.advance(kRetry);
  ASSERT_TRUE(b.wait_to_lead());
  EXPECT_EQ(stored().holder, "b");
  EXPECT_EQ(stored().transitions, 1);
}

TEST_F(LeaderElectionTest, ADeadLeadersLeaseIsTakenAfterItsDurationAndNotBefore) {
  Candidate a(server_, timer_, "a", false);
  ASSERT_TRUE(a.wait_to_lead());
  a.stop();
  Candidate b(server_, timer_, "b");
  pass(6 * kRetry);  // 14.4 s
  EXPECT_FALSE(b.leads);
  pass(kRetry);
  ASSERT_TRUE(b.wait_to_lead());
  EXPECT_EQ(stored().holder, "b");
}

TEST_F(LeaderElectionTest, WhatOthersWriteAsTimeIsNotBelieved) {
  write_as("old", "2001-01-01T00:00:00.000000Z");
  Candidate b(server_, timer_, "b");
  pass(seconds(10));
  EXPECT_FALSE(b.leads) << "the lease was seen for less than its duration";
  // Another renewal, with a clock in another year, is a change all the same.
  write_as("old", "2099-01-01T00:00:00.000000Z");
  pass(seconds(12));
  EXPECT_FALSE(b.leads);
  pass(seconds(5));
  ASSERT_TRUE(b.wait_to_lead());
}

TEST_F(LeaderElectionTest, ALeaderThatCannotRenewGivesUpAtItsDeadline) {
  Candidate a(server_, timer_, "a");
  ASSERT_TRUE(a.wait_to_lead());
  const TimePoint start = timer_.now();
  server_.fail("leases", {.status = 500}, 1'000'000);
  for (int i = 0; i < 9; ++i) timer_.advance(seconds(1));
  EXPECT_FALSE(a.lost);
  timer_.advance(seconds(1));
  ASSERT_TRUE(a.wait_to_lose());
  EXPECT_GE(Duration(a.lost_at), (start + seconds(10)).time_since_epoch());
  a.stop();
  EXPECT_EQ(a.outcome, Outcome::kLost);
}

TEST_F(LeaderElectionTest, ARequestThatHangsDoesNotHideTheDeadline) {
  // Requests last for half of the deadline at most, longer than this test waits.
  Candidate a(server_, {.lease = kLease,
                        .identity = "a",
                        .lease_duration = seconds(150),
                        .renew_deadline = seconds(100),
                        .timer = &timer_});
  ASSERT_TRUE(a.wait_to_lead());
  const size_t looks = server_.requests("GET").size();
  server_.fail("leases", {.hang = true}, 100);
  wait_for_looks();
  timer_.advance(seconds(2));
  ASSERT_TRUE(server_.wait_for_requests("GET", looks + 1));
  timer_.advance(seconds(99));
  ASSERT_TRUE(a.wait_to_lose());
  EXPECT_TRUE(a.wait_to_stop_leading()) << "another may lead soon";
  a.stop();
  EXPECT_EQ(a.outcome, Outcome::kLost) << "the request that hangs was broken off";
  server_.release_hanging();
}

TEST_F(LeaderElectionTest, AFailedRenewalIsForgivenByTheNext) {
  Candidate a(server_, timer_, "a");
  ASSERT_TRUE(a.wait_to_lead());
  for (size_t round = 1; round <= 4; ++round) {
    wait_for_looks();  // the last renewal is behind it
    server_.fail("PUT", {.status = 500}, 2);
    for (size_t i = 1; i <= 3; ++i) {
      wait_for_looks();
      timer_.advance(seconds(2));
      ASSERT_TRUE(server_.wait_for_requests("PUT", 3 * (round - 1) + i));
    }
  }
  EXPECT_FALSE(a.lost);
}

TEST_F(LeaderElectionTest, ALeaseThatAnotherHoldsIsLostAtOnce) {
  Candidate a(server_, timer_, "a");
  ASSERT_TRUE(a.wait_to_lead());
  write_as("b", "2024-01-01T00:00:00.000000Z");
  wait_for_looks();
  timer_.advance(seconds(2));
  ASSERT_TRUE(a.wait_to_lose());
  a.stop();
  EXPECT_EQ(a.outcome, Outcome::kLost);
  EXPECT_EQ(stored().holder, "b") << "what is not ours is not given back";
}

TEST_F(LeaderElectionTest, OfManyThatStartTogetherOneLeads) {
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (int i = 0; i < 5; ++i)
    candidates.push_back(
        std::make_unique<Candidate>(server_, timer_, "candidate-" + std::to_string(i)));
  pass(kRetry, 5);
  const std::string holder = stored().holder;
  int leading = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const bool leads = holder == "candidate-" + std::to_string(i);
    if (leads) {
      EXPECT_TRUE(candidates[i]->wait_to_lead());
    }
    leading += candidates[i]->leads ? 1 : 0;
  }
  EXPECT_EQ(leading, 1);
}

TEST_F(LeaderElectionTest, OptionsThatWouldMakeTwoLeadersAreRefused) {
  EXPECT_THROW(LeaderElection(server_.config(), {.lease = kLease,
                                                 .identity = "a",
                                                 .lease_duration = seconds(10),
                                                 .renew_deadline = seconds(10)}),
               InvalidInput);
  EXPECT_THROW(LeaderElection(server_.config(), {.lease = kLease}), InvalidInput);
}

TEST(Lease, KeepsWhatOthersPutIntoTheObject) {
  Json lease{{"metadata", {{"labels", {{"a", "b"}}}}}, {"spec", {{"strategy", "x"}}}};
  const LeaseRecord record{"me", seconds(15), "2024-01-01T00:00:00.000000Z",
                           "2024-01-01T00:00:00.000000Z", 2};
  write_lease(lease, kLease, record);
  EXPECT_EQ(read_lease(lease), record);
  EXPECT_EQ(lease["spec"]["strategy"], "x");
  EXPECT_EQ(label(lease, "a"), "b");
}

TEST(Lease, WhatIsMalformedReadsAsNobodys) {
  for (const char* text : {"null", "{}", R"({"spec": []})", R"({"spec": {"holderIdentity": 3}})"})
    EXPECT_EQ(read_lease(Json::parse(text)), LeaseRecord{}) << text;
}

}  // namespace
}  // namespace outrigger::kube
