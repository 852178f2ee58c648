#include "feed/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::feed {
namespace {

using Missing = WorkItem::Missing;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr WorkerId kAnn = 1;
constexpr WorkerId kBob = 2;

/// A ledger with one step of two micro-batches, whose stems train.
class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    std::vector<WorkItem> items(2);
    for (uint32_t index = 0; index < 2; ++index) {
      items[index].step = 5;
      items[index].index = index;
      items[index].stem_trains = true;
    }
    ledger_.draw(5, std::move(items));
  }

  WorkItem& item(uint32_t index = 0) { return *ledger_.find(5, index); }
  WorkKey lease(WorkerId worker, WorkKind kind = WorkKind::kForward) {
    return ledger_.lease(item(), worker, kind, {});
  }
  /// The forward result of an attempt is taken and handed to the head.
  void receive(const WorkKey& key) {
    ledger_.received(item(), key, {.key = key, .pixel_hash = 77});
    item().result.reset();
  }

  Ledger ledger_{3};
  const std::shared_ptr<const Tensor> gradient_ = std::make_shared<Tensor>();
  const std::shared_ptr<const std::vector<float>> sums_ = std::make_shared<std::vector<float>>(4);
};

TEST_F(LedgerTest, AnItemGoesThroughItsStatesToTheCommit) {
  EXPECT_EQ(item().state, WorkState::kDrawn);
  EXPECT_TRUE(item().unleased());
  const WorkKey key = lease(kAnn);
  EXPECT_EQ(item().state, WorkState::kLeased);
  EXPECT_FALSE(item().unleased());
  receive(key);
  EXPECT_EQ(item().state, WorkState::kReceived);
  EXPECT_EQ(item().missing(), Missing::kNothing);
  EXPECT_EQ(item().pixel_hash, 77u);
  EXPECT_TRUE(ledger_.head_done(item(), gradient_)) << "its worker keeps the activations";
  EXPECT_EQ(item().missing(), Missing::kGradient);
  ledger_.gradient_received(item(), key, sums_);
  EXPECT_EQ(item().missing(), Missing::kNothing);
}

TEST_F(LedgerTest, TheNumberOfAnAttemptIsGivenOutOnce) {
  const WorkKey first = lease(kAnn);
  ledger_.give_back(item(), first.attempt);
  const WorkKey second = lease(kAnn);
  EXPECT_EQ(first.incarnation, 3u);
  EXPECT_NE(first.attempt, second.attempt);
  EXPECT_EQ(ledger_.wanted(first, kAnn), nullptr);
  EXPECT_EQ(ledger_.wanted(second, kAnn), &item());
}

TEST_F(LedgerTest, AResultIsWantedOfWhoHoldsTheLeaseInThisLife) {
  const WorkKey key = lease(kAnn);
  EXPECT_EQ(ledger_.wanted(key, kAnn), &item());
  EXPECT_EQ(ledger_.wanted(key, kBob), nullptr);
  WorkKey former = key;
  former.incarnation = 2;
  EXPECT_EQ(ledger_.wanted(former, kAnn), nullptr);
  WorkKey elsewhere = key;
  elsewhere.index = 9;
  EXPECT_EQ(ledger_.wanted(elsewhere, kAnn), nullptr);
}

TEST_F(LedgerTest, TheFirstResultWinsAndTheOtherAttemptsAreOver) {
  const WorkKey slow = lease(kAnn);
  const WorkKey quick = lease(kBob);
  const auto others = ledger_.received(item(), quick, {.key = quick});
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].worker, kAnn);
  EXPECT_EQ(ledger_.wanted(slow, kAnn), nullptr);
  EXPECT_EQ(item().source->worker, kBob);
}

TEST_F(LedgerTest, WhatIsLostBeforeTheHeadIsDrawnAgain) {
  lease(kAnn);
  ledger_.lose(kAnn);
  EXPECT_EQ(item().state, WorkState::kDrawn);
  EXPECT_TRUE(item().unleased());
}

TEST_F(LedgerTest, ASecondHolderKeepsTheLeaseOfOneWhoIsLost) {
  lease(kAnn);
  const WorkKey second = lease(kBob);
  ledger_.lose(kAnn);
  EXPECT_EQ(item().state, WorkState::kLeased);
  EXPECT_EQ(ledger_.wanted(second, kBob), &item());
}

TEST_F(LedgerTest, ASourceLostBeforeTheHeadIsDoneLeavesABackwardToLease) {
  receive(lease(kAnn));
  ledger_.lose(kAnn);
  EXPECT_EQ(item().state, WorkState::kReceived) << "the result is here";
  EXPECT_FALSE(ledger_.head_done(item(), gradient_)) << "nobody keeps the activations";
  EXPECT_TRUE(item().unleased());
}

TEST_F(LedgerTest, WhatIsLostAfterTheHeadKeepsItsGradientForWhoComesNext) {
  receive(lease(kAnn));
  ledger_.head_done(item(), gradient_);
  ledger_.lose(kAnn);
  EXPECT_EQ(item().state, WorkState::kHeadDone) << "the head never repeats";
  EXPECT_TRUE(item().unleased());
  EXPECT_EQ(item().cut_gradient, gradient_);
  const WorkKey again = lease(kBob, WorkKind::kBackward);
  EXPECT_THAT(ledger_.gradient_received(item(), again, sums_), IsEmpty());
  EXPECT_EQ(item().stem_gradient, sums_);
}

TEST_F(LedgerTest, TellsWhatAWorkerHolds) {
  EXPECT_THAT(ledger_.held_by(kAnn), IsEmpty());
  receive(lease(kAnn));
  ledger_.lease(item(1), kAnn, WorkKind::kForward, {});
  EXPECT_THAT(ledger_.held_by(kAnn),
              ElementsAre(Pair(WorkState::kLeased, 1u), Pair(WorkState::kReceived, 1u)));
  ledger_.head_done(item(), gradient_);
  EXPECT_THAT(ledger_.held_by(kAnn),
              ElementsAre(Pair(WorkState::kLeased, 1u), Pair(WorkState::kHeadDone, 1u)));
  EXPECT_THAT(ledger_.held_by(kBob), IsEmpty());
}

TEST_F(LedgerTest, ACommittedStepIsForgotten) {
  for (uint32_t index = 0; index < 2; ++index) {
    const WorkKey key = ledger_.lease(item(index), kAnn, WorkKind::kForward, {});
    ledger_.received(item(index), key, {.key = key});
    item(index).result.reset();
  }
  ledger_.commit(5);
  EXPECT_EQ(ledger_.find(5, 0), nullptr);
  EXPECT_THAT(ledger_.steps(), IsEmpty());
}

}  // namespace
}  // namespace outrigger::feed
