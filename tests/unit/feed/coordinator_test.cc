#include "feed/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/unit/feed/coordinator_fixture.h"

namespace outrigger::feed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(CoordinatorTest, LeasesAsMuchAsWorkersAskForAndNotBeyondTheNextStep) {
  Coordinator feed = make(pixels());
  const WorkerId only = join(feed, 1);
  EXPECT_THAT(sent<Lease>(feed, only), SizeIs(1));
  feed.receive(only, Pull{100}, clock_.now());
  EXPECT_THAT(sent<Lease>(feed, only), SizeIs(3)) << "the rest of this step and all of the next";
}

TEST_F(CoordinatorTest, LeasesFurtherAheadWhereAStepHasFewMicroBatchesForEachWorker) {
  EXPECT_EQ(steps_ahead(0, 8), 1u);
  EXPECT_EQ(steps_ahead(16, 8), 1u);
  EXPECT_EQ(steps_ahead(32, 8), 2u);
  EXPECT_EQ(steps_ahead(4000, 8), 4u);
  Coordinator feed = make(pixels());
  for (int i = 0; i < 3; ++i) join(feed, 0);
  const WorkerId hungry = join(feed, 100);
  EXPECT_THAT(sent<Lease>(feed, hungry), SizeIs(2 * 5)) << "two of each worker's beyond this step";
}

TEST_F(CoordinatorTest, AWorkerWithManyThreadsHoldsMoreOnceItHasShownWhatItDoes) {
  Coordinator feed = make(pixels());
  const WorkerId large = feed.add_worker({.name = "large", .leases = 16}, clock_.now());
  feed.receive(large, Pull{16}, clock_.now());
  const auto first = sent<Lease>(feed, large);
  EXPECT_THAT(first, SizeIs(4)) << "it may be slow";
  clock_.advance(std::chrono::milliseconds(10));
  deliver(feed, large, first.front());
  EXPECT_THAT(sent<Lease>(feed, large), SizeIs(2 * 5 - 4))
      << "four steps beyond this one are drawn";
}

TEST_F(CoordinatorTest, WhileTheTrainerWaitsTheLocalWorkerTakesOneAtATimeFromTheOthers) {
  CoordinatorOptions four = options();
  four.micro_batches = 4;
  Coordinator feed(four, SampleOrder({.seed = 1, .samples = 8}), dataset_, pixels());
  join(feed, 1);
  const WorkerId local = feed.add_worker({"local", true, true}, clock_.now());
  feed.receive(local, Pull{8}, clock_.now());
  EXPECT_THAT(sent<Lease>(feed, local), IsEmpty()) << "its cores are the device's";
  EXPECT_FALSE(feed.try_take(0, 0, clock_.now()));
  const auto first = sent<Lease>(feed, local);
  ASSERT_THAT(first, SizeIs(1));
  deliver(feed, local, first[0]);
  EXPECT_THAT(sent<Lease>(feed, local), SizeIs(1)) << "the trainer still waits for the other's";
}

TEST_F(CoordinatorTest, TheTrainerTakesMicroBatchesInAnyOrderAndCommitsWhatFilledThem) {
  Coordinator feed = make(pixels());
  const WorkerId worker = join(feed, 2);
  const auto leases = sent<Lease>(feed, worker);
  EXPECT_FALSE(feed.try_take(0, 0, clock_.now()));
  deliver(feed, worker, leases[1], 22);
  deliver(feed, worker, leases[0], 11);
  for (uint32_t index = 0; index < 2; ++index) {
    const auto batch = feed.try_take(0, index, clock_.now());
    ASSERT_TRUE(batch);
    EXPECT_THAT(batch->slots, testing::ElementsAre(2 * index, 2 * index + 1));
    EXPECT_EQ(batch->labels[0], leases[index].samples[0].sample.label);
  }
  const auto audit = feed.commit(0, clock_.now());
  ASSERT_THAT(audit, SizeIs(2));
  EXPECT_EQ(audit[0].pixel_hash, 11u);
  EXPECT_EQ(audit[1].first_slot, 2u);
  EXPECT_THAT(sent<Committed>(feed, worker), SizeIs(1));
}

TEST_F(CoordinatorTest, WhatALostWorkerHeldGoesToTheNext) {
  Coordinator feed = make(pixels());
  const WorkerId first = join(feed, 2);
  const auto lost = sent<Lease>(feed, first);
  feed.lose_worker(first, clock_.now());
  const WorkerId second = join(feed, 2);
  const auto again = sent<Lease>(feed, second);
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_EQ(again[0].samples[0].id, lost[0].samples[0].id);
  EXPECT_NE(again[0].key, lost[0].key);
}

TEST_F(CoordinatorTest, WhatIsLateIsLeasedASecondTimeAndTheFirstResultWins) {
  Coordinator feed = make(pixels());
  const WorkerId slow = join(feed, 1);
  const auto lease = sent<Lease>(feed, slow);
  const WorkerId quick = join(feed, 4);
  static_cast<void>(feed.take_outbox());
  EXPECT_FALSE(feed.try_take(0, 0, clock_.now()));
  feed.tick(clock_.now());
  EXPECT_EQ(feed.second_leases(), 0u) << "not late yet";
  clock_.advance(milliseconds(201));
  feed.tick(clock_.now());
  const auto second = sent<Lease>(feed, quick);
  ASSERT_FALSE(second.empty());
  EXPECT_EQ(second[0].key.index, lease[0].key.index);
  EXPECT_EQ(feed.second_leases(), 1u);
  deliver(feed, quick, second[0]);
  EXPECT_THAT(sent<Cancel>(feed, slow), SizeIs(1));
  deliver(feed, slow, lease[0]);
  EXPECT_EQ(feed.dropped_results(), 1u);
}

TEST_F(CoordinatorTest, WhatNobodyWaitsForIsNeverLate) {
  Coordinator feed = make(pixels());
  const WorkerId worker = join(feed, 1);
  static_cast<void>(sent<Lease>(feed, worker));
  join(feed, 4);
  clock_.advance(seconds(60));
  feed.tick(clock_.now());
  EXPECT_EQ(feed.second_leases(), 0u);
}

TEST_F(CoordinatorTest, AStemGoesOutOnceForEachVersionAndWorker) {
  Coordinator feed = make(one_stem_away());
  const auto floats = std::make_shared<const std::vector<float>>(kStemFloats);
  feed.publish_stem(0, floats, floats, clock_.now());
  const WorkerId worker = join(feed, 4);
  EXPECT_THAT(sent<StemWeights>(feed, worker), SizeIs(1)) << "the next step's is not there yet";
  feed.publish_stem(1, floats, floats, clock_.now());
  EXPECT_THAT(sent<StemWeights>(feed, worker), SizeIs(1));
}

TEST_F(CoordinatorTest, AWorkerWithTooLittleMemoryForThePlansStemsGetsPixelsOnly) {
  CoordinatorOptions four = options();
  four.micro_batches = 4;
  Plan plan = one_stem_away();
  plan.stem_memory = {.fixed = 1.9e9, .each = 1e8};
  Coordinator feed(four, SampleOrder({.seed = 1, .samples = 8}), dataset_, plan);
  const auto join_with = [&](double memory) {
    const WorkerId id = feed.add_worker({.name = "worker", .memory = memory}, clock_.now());
    feed.receive(id, Pull{10}, clock_.now());
    return id;
  };
  const auto small = sent<Lease>(feed, join_with(1e9));
  EXPECT_THAT(small, SizeIs(6)) << "two steps' pixels";
  for (const Lease& lease : small) EXPECT_EQ(lease.cut, 0);
  EXPECT_EQ(feed.stem_workers(), 0u);
  const auto stems = sent<Lease>(feed, join_with(2e9));
  EXPECT_EQ(feed.stem_workers(), 1u);
  ASSERT_THAT(stems, SizeIs(2));
  for (const Lease& lease : stems) EXPECT_EQ(lease.cut, kCut);
}

TEST_F(CoordinatorTest, StemsThatOnlyOneWorkerCanHoldAreTheServersOwnOnceThatHasLeft) {
  Plan plan = one_stem_away();
  plan.stem_memory = {.fixed = 2e9};
  Coordinator feed = make(plan);
  const WorkerId local = feed.add_worker({.name = "local", .local = true}, clock_.now());
  const auto join_with = [&](double memory) {
    const WorkerId id = feed.add_worker({.name = "worker", .memory = memory}, clock_.now());
    feed.receive(id, Pull{10}, clock_.now());
    return id;
  };
  const WorkerId large = join_with(3e9);
  const WorkerId small = join_with(1e9);
  const auto stems_of = [&](WorkerId id, const std::vector<Outgoing>& posted) {
    return std::ranges::count_if(posted, [&](const Outgoing& out) {
      const auto* lease = std::get_if<Lease>(&out.message);
      return out.to == id && lease != nullptr && lease->cut > 0;
    });
  };
  const auto before = feed.take_outbox();
  EXPECT_GT(stems_of(large, before), 0);
  EXPECT_EQ(stems_of(small, before), 0);
  feed.receive(local, Pull{10}, clock_.now());
  feed.lose_worker(large, clock_.now());
  const auto after = feed.take_outbox();
  EXPECT_EQ(stems_of(local, after), stems_of(large, before));
  EXPECT_EQ(stems_of(small, after), 0);
}

TEST_F(CoordinatorTest, AWorkerThatComputesDifferentlyGetsPixelsOnly) {
  CoordinatorOptions four = options();
  four.micro_batches = 4;
  Coordinator feed(four, SampleOrder({.seed = 1, .samples = 8}), dataset_, one_stem_away());
  const WorkerId decoder = join(feed, 10, false);
  for (const Lease& lease : sent<Lease>(feed, decoder)) EXPECT_EQ(lease.cut, 0);
  const WorkerId other = join(feed, 10);
  const auto leases = sent<Lease>(feed, other);
  ASSERT_THAT(leases, SizeIs(2));
  for (const Lease& lease : leases) EXPECT_EQ(lease.cut, kCut);
}

TEST_F(CoordinatorTest, TheGradientGoesWhereTheActivationsAreOrIsDoneAgain) {
  Coordinator feed = make(one_stem_away());
  const WorkerId first = join(feed, 2);
  const auto leases = sent<Lease>(feed, first);
  for (const Lease& lease : leases) deliver(feed, first, lease);
  for (uint32_t index = 0; index < 2; ++index) ASSERT_TRUE(feed.try_take(0, index, clock_.now()));
  feed.head_done(0, 1, gradient_, clock_.now());
  const auto gradients = sent<CutGradient>(feed, first);
  ASSERT_THAT(gradients, SizeIs(1));
  EXPECT_EQ(gradients[0].key, leases[1].key);

  const WorkerId second = join(feed, 4);
  static_cast<void>(feed.take_outbox());
  feed.lose_worker(first, clock_.now());
  const auto again = sent<Lease>(feed, second);
  const auto backward =
      std::ranges::find(again, WorkKind::kBackward, [](const Lease& lease) { return lease.kind; });
  ASSERT_NE(backward, again.end());
  EXPECT_EQ(backward->cut_gradient, gradient_);
  EXPECT_EQ(backward->stem_version, leases[1].stem_version);
  EXPECT_EQ(feed.try_take_gradient(0, 1, clock_.now()), nullptr);
  const auto sums = std::make_shared<const std::vector<float>>(kStemFloats);
  feed.receive(second, StemGradient{backward->key, sums}, clock_.now());
  EXPECT_EQ(feed.try_take_gradient(0, 1, clock_.now()), sums);
}

TEST_F(CoordinatorTest, ANewPlanStartsAtTheFirstStepNotYetDrawn) {
  Coordinator feed = make(pixels());
  static_cast<void>(feed.plan_of(1, clock_.now()));
  Plan next = one_stem_away();
  next.number = 2;
  feed.set_plan(next);
  EXPECT_EQ(feed.plan_of(0, clock_.now()).number, 1u);
  EXPECT_EQ(feed.plan_of(1, clock_.now()).number, 1u);
  const WorkerId worker = join(feed, 4);
  for (const Lease& lease : sent<Lease>(feed, worker)) deliver(feed, worker, lease);
  for (uint32_t index = 0; index < 2; ++index) ASSERT_TRUE(feed.try_take(0, index, clock_.now()));
  feed.commit(0, clock_.now());
  EXPECT_EQ(feed.plan_of(2, clock_.now()).number, 2u);
}

TEST_F(CoordinatorTest, AResultOfAnotherSizeBreaksTheProtocol) {
  Coordinator feed = make(pixels());
  const WorkerId worker = join(feed, 1);
  auto lease = sent<Lease>(feed, worker)[0];
  lease.samples.pop_back();
  EXPECT_THROW(deliver(feed, worker, lease), InvalidInput);
}

// Ranks stop together, between two steps: only then does training end.
TEST_F(CoordinatorTest, AStopOfEvaluationsLeavesTrainingAsItWas) {
  std::stop_source stop;
  CoordinatorOptions given = options();
  given.evaluation_stop = stop.get_token();
  given.total_steps = 1;
  Coordinator feed = make(pixels(), given);
  const WorkerId worker = join(feed, 8);
  feed.begin_evaluation(dataset_, 8);
  EXPECT_FALSE(feed.try_take_evaluation(0, clock_.now()));
  EXPECT_EQ(feed.scorers(), 1u);
  stop.request_stop();
  EXPECT_THROW(feed.try_take_evaluation(0, clock_.now()), Cancelled);
  EXPECT_EQ(feed.scorers(), 0u);
  feed.end_evaluation();
  feed.plan_of(0, clock_.now());
  for (const Lease& lease : sent<Lease>(feed, worker)) {
    if (lease.kind == WorkKind::kForward) deliver(feed, worker, lease);
  }
  for (const uint32_t index : {0, 1}) EXPECT_TRUE(feed.try_take(0, index, clock_.now())) << index;
  feed.commit(0, clock_.now());
  feed.begin_evaluation(dataset_, 8);
  EXPECT_FALSE(feed.try_take_evaluation(0, clock_.now())) << "behind the last step it is finished";
}

TEST_F(CoordinatorTest, EvaluationsGoBehindTrainingAndEndWithAPartialBatch) {
  Coordinator feed = make(pixels());
  static_cast<void>(feed.plan_of(0, clock_.now()));
  feed.begin_evaluation(dataset_, 3);
  EXPECT_EQ(feed.evaluation_batches(), 3u);
  const WorkerId worker = join(feed, 100);
  const auto leases = sent<Lease>(feed, worker);
  ASSERT_THAT(leases, SizeIs(7)) << "two steps and three batches";
  EXPECT_EQ(leases.front().kind, WorkKind::kForward);
  std::vector<size_t> sizes;
  for (const Lease& lease : leases) {
    if (lease.kind != WorkKind::kEvaluate) continue;
    sizes.push_back(lease.samples.size());
    deliver(feed, worker, lease);
  }
  EXPECT_THAT(sizes, testing::ElementsAre(3, 3, 2));
  for (uint32_t index = 0; index < 3; ++index)
    EXPECT_TRUE(feed.try_take_evaluation(index, clock_.now())) << index;
  feed.end_evaluation();
}

}  // namespace
}  // namespace outrigger::feed
