#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tests/unit/feed/coordinator_fixture.h"

namespace outrigger::feed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Steps of four micro-batches.
class LeaseChoiceTest : public CoordinatorTest {
 protected:
  static CoordinatorOptions four() {
    CoordinatorOptions four = options();
    four.micro_batches = 4;
    return four;
  }
  void deliver_each_after(milliseconds pace, Coordinator& feed, WorkerId from,
                          const std::vector<Lease>& leases) {
    for (const Lease& lease : leases) {
      clock_.advance(pace);
      deliver(feed, from, lease);
    }
  }
  void take_all(Coordinator& feed, uint64_t step) {
    for (uint32_t index = 0; index < 4; ++index)
      ASSERT_TRUE(feed.try_take(step, index, clock_.now())) << index;
  }

  struct Two {
    WorkerId fast;
    WorkerId slow;
  };
  /// Two workers whose pace is known, without room, and a first step that is committed.
  Two workers_of_known_pace(Coordinator& feed, milliseconds fast_pace, milliseconds slow_pace) {
    Two two{};
    two.slow = join(feed, 4);
    const auto of_slow = sent<Lease>(feed, two.slow);
    two.fast = join(feed, 4);
    const auto of_fast = sent<Lease>(feed, two.fast);
    std::multimap<milliseconds, std::pair<WorkerId, Lease>> results;
    for (int i = 0; i < 4; ++i) {
      results.emplace((i + 1) * slow_pace, std::pair(two.slow, of_slow.at(i)));
      results.emplace((i + 1) * fast_pace, std::pair(two.fast, of_fast.at(i)));
    }
    milliseconds last{0};
    for (const auto& [at, result] : results) {
      clock_.advance(at - last);
      last = at;
      deliver(feed, result.first, result.second);
    }
    take_all(feed, 0);
    feed.commit(0, clock_.now());
    return two;
  }
  static std::vector<uint32_t> of_step(uint64_t step, const std::vector<Lease>& leases) {
    std::vector<uint32_t> indexes;
    for (const Lease& lease : leases)
      if (lease.key.step == step) indexes.push_back(lease.key.index);
    return indexes;
  }
};

TEST_F(LeaseChoiceTest, WhoWillBeDoneFirstGetsTheNextLease) {
  Coordinator feed = make(pixels(), four());
  const auto [fast, slow] = workers_of_known_pace(feed, milliseconds(100), milliseconds(1000));
  feed.receive(fast, Pull{4}, clock_.now());
  feed.receive(slow, Pull{4}, clock_.now());
  EXPECT_THAT(sent<Lease>(feed, fast), SizeIs(4))
      << "four times its pace is less than once the other's";
}

TEST_F(LeaseChoiceTest, AnItemWaitsForAFasterWorkerAndALaterOneGoesToTheSlower) {
  Coordinator feed = make(pixels(), four());
  const auto [fast, slow] = workers_of_known_pace(feed, milliseconds(100), milliseconds(250));
  feed.receive(fast, Pull{1}, clock_.now());
  EXPECT_THAT(of_step(2, sent<Lease>(feed, fast)), ElementsAre(0));
  feed.receive(slow, Pull{4}, clock_.now());
  EXPECT_THAT(of_step(2, sent<Lease>(feed, slow)), ElementsAre(2))
      << "the fast one is done with 1 after 200 ms and would be with 2 after 300";
  feed.receive(fast, Pull{1}, clock_.now());
  EXPECT_THAT(of_step(2, sent<Lease>(feed, fast)), ElementsAre(1));
}

TEST_F(LeaseChoiceTest, ASlowWorkerThatGotNothingForLongIsTriedAgain) {
  CoordinatorOptions many = four();
  many.total_steps = 1000;
  Coordinator feed = make(pixels(), many);
  const auto [fast, slow] = workers_of_known_pace(feed, milliseconds(100), milliseconds(1000));
  take_all(feed, 1);
  feed.commit(1, clock_.now());
  feed.receive(slow, Pull{4}, clock_.now());
  const TimePoint idle_since = clock_.now();
  std::vector<Lease> of_slow;
  for (uint64_t step = 2; of_slow.empty(); ++step) {
    ASSERT_LT(clock_.now() - idle_since, seconds(60));
    feed.receive(fast, Pull{4}, clock_.now());
    std::vector<Lease> of_fast;
    for (const auto& out : feed.take_outbox()) {
      const auto* lease = std::get_if<Lease>(&out.message);
      if (lease != nullptr) (out.to == fast ? of_fast : of_slow).push_back(*lease);
    }
    if (!of_slow.empty()) break;
    deliver_each_after(milliseconds(100), feed, fast, of_fast);
    take_all(feed, step);
    feed.commit(step, clock_.now());
  }
  EXPECT_GT(clock_.now() - idle_since, seconds(49));
}

TEST_F(LeaseChoiceTest, WhatTheTrainerWaitsForWaitsForNobodysRoom) {
  Coordinator feed = make(pixels(), four());
  const auto [fast, slow] = workers_of_known_pace(feed, milliseconds(100), milliseconds(1000));
  take_all(feed, 1);
  feed.commit(1, clock_.now());
  feed.receive(fast, Pull{1}, clock_.now());
  EXPECT_THAT(of_step(2, sent<Lease>(feed, fast)), ElementsAre(0));
  EXPECT_FALSE(feed.try_take(2, 1, clock_.now()));
  EXPECT_THAT(of_step(2, sent<Lease>(feed, slow)), ElementsAre(1)) << "nobody has room";
  EXPECT_FALSE(feed.try_take(2, 3, clock_.now()));
  EXPECT_THAT(of_step(2, sent<Lease>(feed, fast)), ElementsAre(3)) << "slow has more on top";
  feed.receive(slow, Pull{2}, clock_.now());
  EXPECT_THAT(of_step(2, sent<Lease>(feed, slow)), IsEmpty()) << "fast will be done first";
  EXPECT_FALSE(feed.try_take(2, 2, clock_.now()));
  EXPECT_THAT(of_step(2, sent<Lease>(feed, slow)), ElementsAre(2)) << "slow has room";
}

TEST_F(LeaseChoiceTest, ThatAWorkerWaitsForWeightsSaysNothingOfItsPace) {
  Plan plan = one_stem_away();
  plan.stems_away = 4;
  Coordinator feed = make(plan, four());
  const auto floats = std::make_shared<const std::vector<float>>(kStemFloats);
  feed.publish_stem(0, floats, floats, clock_.now());
  const WorkerId fast = join(feed, 2);
  const auto of_fast = sent<Lease>(feed, fast);
  const WorkerId slow = join(feed, 2);
  const auto of_slow = sent<Lease>(feed, slow);
  deliver_each_after(milliseconds(100), feed, fast, of_fast);
  deliver_each_after(milliseconds(50), feed, slow, {of_slow[0]});  // 250 ms since its lease
  deliver_each_after(milliseconds(250), feed, slow, {of_slow[1]});
  feed.receive(slow, Pull{1}, clock_.now());
  const auto slow_ahead = sent<Lease>(feed, slow);
  ASSERT_THAT(of_step(1, slow_ahead), ElementsAre(2));
  feed.receive(fast, Pull{1}, clock_.now());
  const auto fast_ahead = sent<Lease>(feed, fast);
  ASSERT_THAT(of_step(1, fast_ahead), ElementsAre(0));

  clock_.advance(seconds(10));
  feed.receive(slow, Pull{1}, clock_.now());
  EXPECT_THAT(of_step(1, sent<Lease>(feed, slow)), IsEmpty()) << "nobody has been busy for 10 s";
  feed.publish_stem(1, floats, floats, clock_.now());
  deliver_each_after(milliseconds(100), feed, fast, fast_ahead);
  deliver_each_after(milliseconds(150), feed, slow, slow_ahead);
  feed.receive(slow, Pull{4}, clock_.now());
  EXPECT_THAT(of_step(1, sent<Lease>(feed, slow)), IsEmpty()) << "1 and 3 wait for the fast one";
}

TEST_F(LeaseChoiceTest, ThatAWorkerRunsStemsBackwardSaysNothingOfItsPace) {
  Plan plan = one_stem_away();
  plan.stems_away = 4;
  Coordinator feed = make(plan, four());
  const auto floats = std::make_shared<const std::vector<float>>(kStemFloats);
  feed.publish_stem(0, floats, floats, clock_.now());
  const WorkerId fast = join(feed, 2);
  const auto of_fast = sent<Lease>(feed, fast);
  const WorkerId slow = join(feed, 2);
  const auto of_slow = sent<Lease>(feed, slow);
  deliver_each_after(milliseconds(100), feed, fast, {of_fast[0]});
  ASSERT_TRUE(feed.try_take(0, 0, clock_.now()));
  feed.head_done(0, 0, gradient_, clock_.now());
  const auto backward = sent<CutGradient>(feed, fast);
  ASSERT_THAT(backward, SizeIs(1));
  deliver_each_after(milliseconds(25), feed, slow, {of_slow[0]});  // 125 ms since its lease
  deliver_each_after(milliseconds(125), feed, slow, {of_slow[1]});
  feed.receive(fast, StemGradient{backward[0].key, floats}, clock_.now());
  deliver_each_after(milliseconds(100), feed, fast, {of_fast[1]});

  feed.publish_stem(1, floats, floats, clock_.now());
  feed.receive(slow, Pull{1}, clock_.now());
  EXPECT_THAT(of_step(1, sent<Lease>(feed, slow)), ElementsAre(1)) << "0 waits for the fast one";
}

TEST_F(LeaseChoiceTest, OneThatIsAlwaysOvertakenIsNoLongerTheFirstToGetWork) {
  CoordinatorOptions three = four();
  three.micro_batches = 3;
  Coordinator feed(three, SampleOrder({.seed = 1, .samples = 6}), dataset_, pixels());
  const WorkerId stuck = join(feed, 1);
  const WorkerId fast = join(feed, 100);
  size_t of_stuck = 0;
  const auto deliver_what_fast_has = [&] {
    clock_.advance(milliseconds(100));
    for (const auto& out : feed.take_outbox()) {
      const auto* lease = std::get_if<Lease>(&out.message);
      if (lease != nullptr && out.to == fast) deliver(feed, fast, *lease);
      if (lease != nullptr && out.to == stuck) ++of_stuck;
      if (std::holds_alternative<Cancel>(out.message)) feed.receive(stuck, Pull{1}, clock_.now());
    }
  };
  for (uint64_t step = 0; step < 5; ++step) {
    for (uint32_t index = 0; index < 3; ++index) {
      deliver_what_fast_has();
      while (!feed.try_take(step, index, clock_.now())) {
        clock_.advance(milliseconds(400));  // until what is late is leased again
        feed.tick(clock_.now());
        deliver_what_fast_has();
      }
    }
    feed.commit(step, clock_.now());
  }
  EXPECT_EQ(of_stuck, 1u);
}

}  // namespace
}  // namespace outrigger::feed
