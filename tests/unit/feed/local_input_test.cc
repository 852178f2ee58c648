#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "feed/coordinator.h"
#include "tests/fakes/fake_clock.h"

namespace outrigger::feed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Steps of four micro-batches of one sample, of which the plan keeps two local; the server's own
/// worker and one remote one.
class LocalInputTest : public testing::Test {
 protected:
  LocalInputTest() {
    dataset_.set_classes({"a"});
    dataset_.begin_container("", false);
    for (int i = 0; i < 8; ++i) dataset_.add_file("image" + std::to_string(i), 0);
    dataset_.finish();
  }

  WorkerId join(Coordinator& feed, bool local) {
    const WorkerId id = feed.add_worker({local ? "local" : "worker", local, true}, clock_.now());
    feed.receive(id, Pull{100}, clock_.now());
    return id;
  }

  /// What was leased since the last call, as indexes of its first step.
  struct Leased {
    std::vector<uint32_t> local;
    std::vector<uint32_t> remote;
  };
  Leased leased(Coordinator& feed, WorkerId local) {
    Leased leased;
    for (const auto& out : feed.take_outbox()) {
      const auto* lease = std::get_if<Lease>(&out.message);
      if (lease == nullptr || lease->key.step != feed.present_step()) continue;
      (out.to == local ? leased.local : leased.remote).push_back(lease->key.index);
    }
    return leased;
  }

  data::Dataset dataset_;
  fakes::FakeClock clock_;
  const Plan plan_{.number = 1, .local_inputs = 2};
  Coordinator feed_{{.total_steps = 10, .micro_batches = 4, .micro_batch = 1},
                    SampleOrder({.seed = 1, .samples = 8}),
                    dataset_,
                    plan_};
};

TEST_F(LocalInputTest, WhatThePlanKeepsLocalTheServersOwnWorkerMakes) {
  const WorkerId remote = join(feed_, false);
  EXPECT_THAT(leased(feed_, 0).remote, ElementsAre(0, 1, 2, 3)) << "no local worker yet";
  feed_.lose_worker(remote, clock_.now());
  const WorkerId local = join(feed_, true);
  EXPECT_THAT(leased(feed_, local).local, ElementsAre(0, 1, 2, 3)) << "nobody else";
}

TEST_F(LocalInputTest, TheOthersMakeTheRest) {
  const WorkerId local = join(feed_, true);
  feed_.lose_worker(local, clock_.now());  // all that it took is free again
  const WorkerId again = feed_.add_worker({"local", true, true}, clock_.now());
  join(feed_, false);
  feed_.receive(again, Pull{100}, clock_.now());
  const Leased both = leased(feed_, again);
  EXPECT_THAT(both.local, ElementsAre(0, 1));
  EXPECT_THAT(both.remote, ElementsAre(2, 3));
}

TEST_F(LocalInputTest, WhatAWorkerThatLeavesHadIsMadeBeforeTheTrainerIsInNeed) {
  const WorkerId local = feed_.add_worker({"local", true, true}, clock_.now());
  const WorkerId remote = feed_.add_worker({"worker", false, true}, clock_.now());
  feed_.receive(remote, Pull{2}, clock_.now());
  feed_.receive(local, Pull{100}, clock_.now());
  const Leased both = leased(feed_, local);
  EXPECT_THAT(both.local, ElementsAre(0, 1));
  EXPECT_THAT(both.remote, ElementsAre(2, 3));
  feed_.receive(remote, Leaving{}, clock_.now());
  EXPECT_THAT(leased(feed_, local).local, ElementsAre(2, 3)) << "its link is still there";
}

TEST_F(LocalInputTest, ALocalWorkerThatHasNoRoomIsWaitedForUntilTheTrainerIsInNeed) {
  const WorkerId local = feed_.add_worker({"local", true, true}, clock_.now());
  join(feed_, false);
  EXPECT_THAT(leased(feed_, local).remote, ElementsAre(2, 3));
  EXPECT_FALSE(feed_.try_take(0, 0, clock_.now()));
  const Leased needed = leased(feed_, local);
  EXPECT_THAT(needed.local, IsEmpty());
  EXPECT_THAT(needed.remote, ElementsAre(0));
}

/// A plan that keeps all of its input local, as jobs with a bound on bytes begin with.
class AllLocalTest : public LocalInputTest {
 protected:
  /// What a worker was given since the last call, of whatever step.
  std::vector<Lease> given_to(WorkerId worker) {
    std::vector<Lease> leases;
    for (const auto& out : all_local_.take_outbox()) {
      const auto* lease = std::get_if<Lease>(&out.message);
      if (lease != nullptr && out.to == worker) leases.push_back(*lease);
    }
    return leases;
  }
  void deliver(WorkerId from, const Lease& lease) {
    all_local_.receive(
        from,
        MicroBatch{.key = lease.key,
                   .tensor = std::make_shared<Tensor>(ElementType::kUint8, Shape{1, 4}),
                   .pixel_hash = 1},
        clock_.now());
  }

  Coordinator all_local_{{.total_steps = 10, .micro_batches = 4, .micro_batch = 1},
                         SampleOrder({.seed = 1, .samples = 8}),
                         dataset_,
                         {.number = 1, .local_inputs = 4}};
};

TEST_F(AllLocalTest, AWorkerOfWhichNothingIsKnownMakesOneMicroBatch) {
  const WorkerId local = all_local_.add_worker({"local", true, true}, clock_.now());
  all_local_.receive(local, Pull{2}, clock_.now());
  const WorkerId remote = join(all_local_, false);
  const auto first = given_to(remote);
  ASSERT_EQ(first.size(), 1u);
  deliver(remote, first[0]);
  EXPECT_THAT(given_to(remote), IsEmpty());
  clock_.advance(std::chrono::minutes(2));
  all_local_.receive(remote, Pull{1}, clock_.now());
  EXPECT_EQ(given_to(remote).size(), 1u) << "what it was like then says little of now";
}

TEST_F(AllLocalTest, AWorkerThatWasSlowThenMakesOneAgain) {
  const WorkerId local = all_local_.add_worker({"local", true, true}, clock_.now());
  all_local_.receive(local, Pull{2}, clock_.now());
  const WorkerId remote = join(all_local_, false);
  std::vector<Lease> of_local;
  std::vector<Lease> of_remote;
  for (const auto& out : all_local_.take_outbox()) {
    if (const auto* lease = std::get_if<Lease>(&out.message))
      (out.to == local ? of_local : of_remote).push_back(*lease);
  }
  ASSERT_EQ(of_local.size(), 2u);
  ASSERT_EQ(of_remote.size(), 1u);
  for (const Lease& lease : of_local) {
    clock_.advance(std::chrono::milliseconds(1));
    deliver(local, lease);
  }
  clock_.advance(std::chrono::seconds(1));
  deliver(remote, of_remote[0]);
  clock_.advance(std::chrono::minutes(2));
  all_local_.receive(remote, Pull{1}, clock_.now());
  EXPECT_EQ(given_to(remote).size(), 1u) << "though the server's own would be done first";
}

}  // namespace
}  // namespace outrigger::feed
