#include "feed/scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/error.h"
#include "common/random.h"
#include "feed/coordinator.h"
#include "tests/fakes/fake_clock.h"

namespace outrigger::feed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kWidth = 2;
constexpr int32_t kLayers = 5;

data::Dataset images(int count) {
  data::Dataset dataset;
  dataset.set_classes({"a", "b"});
  dataset.begin_container("", false);
  for (int i = 0; i < count; ++i) dataset.add_file("image" + std::to_string(i), i % 2);
  dataset.finish();
  return dataset;
}

ScoringOptions options_on(const data::Dataset& dataset, uint32_t batch) {
  ScoringOptions options;
  options.number = 77;
  options.incarnation = 1;
  options.dataset = &dataset;
  options.batch = batch;
  options.width = kWidth;
  options.layers = kLayers;
  options.parameters = std::make_shared<const std::vector<float>>(3);
  options.buffers = std::make_shared<const std::vector<float>>(1);
  return options;
}

std::vector<Lease> leases_in(const std::vector<ServerMessage>& messages) {
  std::vector<Lease> leases;
  for (const auto& message : messages) {
    if (const auto* lease = std::get_if<Lease>(&message)) leases.push_back(*lease);
  }
  return leases;
}

/// Rows that tell their samples.
Scores scores_of(const Lease& lease) {
  Scores scores{.key = lease.key, .values = {}};
  for (const LeaseSample& sample : lease.samples) {
    scores.values.push_back(static_cast<float>(sample.id));
    scores.values.push_back(1);
  }
  return scores;
}

/// The ids that the results tell, in order.
std::vector<float> told(Scoring& scoring) {
  std::vector<float> ids;
  for (const auto& batch : scoring.take_results()) {
    EXPECT_EQ(batch.rows.size(), batch.labels.size() * kWidth);
    for (size_t at = 0; at < batch.rows.size(); at += kWidth) ids.push_back(batch.rows[at]);
  }
  return ids;
}

TEST(Scoring, GivesTheWeightsOnceAndTwoBatchesAtATime) {
  const auto dataset = images(8);
  Scoring scoring(options_on(dataset, 2));
  const auto first = scoring.give(1);
  ASSERT_THAT(first, SizeIs(3));
  const auto& weights = std::get<StemWeights>(first[0]);
  EXPECT_EQ(weights.version, 77u);
  EXPECT_EQ(weights.cut, kLayers);
  EXPECT_EQ(weights.parameter_count, 3u);
  const Lease lease = std::get<Lease>(first[1]);
  EXPECT_EQ(lease.kind, WorkKind::kScore);
  EXPECT_EQ(lease.stem_version, 77u);
  EXPECT_THAT(scoring.give(1), IsEmpty()) << "it has enough in hand";
  EXPECT_THAT(scoring.take(1, scores_of(lease)), IsEmpty());
  EXPECT_THAT(scoring.give(1), SizeIs(1)) << "a lease, and no weights again";
  EXPECT_EQ(scoring.batches_done(), 1u);
  EXPECT_EQ(scoring.batches(), 4u);
}

TEST(Scoring, ResultsComeInTheDataSetsOrderWhoeverMadeThem) {
  const auto dataset = images(5);
  Scoring scoring(options_on(dataset, 2));
  const auto one = leases_in(scoring.give(1));
  const auto two = leases_in(scoring.give(2));
  ASSERT_THAT(one, SizeIs(2));
  ASSERT_THAT(two, SizeIs(1)) << "three batches";
  scoring.take(2, scores_of(two[0]));
  scoring.take(1, scores_of(one[1]));
  EXPECT_FALSE(scoring.done());
  scoring.take(1, scores_of(one[0]));
  EXPECT_TRUE(scoring.done());
  EXPECT_THAT(told(scoring), ElementsAre(0, 1, 2, 3, 4));
}

TEST(Scoring, WhatALostWorkerHadIsGivenToOthersAndItsResultIsDropped) {
  const auto dataset = images(4);
  Scoring scoring(options_on(dataset, 2));
  const auto lost = leases_in(scoring.give(1));
  ASSERT_THAT(lost, SizeIs(2));
  scoring.lose(1);
  const auto again = leases_in(scoring.give(2));
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_THAT(scoring.take(1, scores_of(lost[0])), IsEmpty());
  EXPECT_EQ(scoring.batches_done(), 0u);
  for (const Lease& lease : again) scoring.take(2, scores_of(lease));
  EXPECT_TRUE(scoring.done());
  EXPECT_THAT(told(scoring), ElementsAre(0, 1, 2, 3));
}

TEST(Scoring, WhoFindsNothingLeftRepeatsWhatOthersHaveAndTheSlowerOneIsCancelled) {
  const auto dataset = images(2);
  Scoring scoring(options_on(dataset, 2));
  const Lease slow = leases_in(scoring.give(1)).at(0);
  const Lease repeated = leases_in(scoring.give(2)).at(0);
  EXPECT_EQ(repeated.key.index, slow.key.index);
  EXPECT_NE(repeated.key.attempt, slow.key.attempt);
  EXPECT_THAT(scoring.give(3), IsEmpty()) << "two are at it";
  EXPECT_THAT(scoring.take(2, scores_of(repeated)), ElementsAre(std::pair(WorkerId{1}, slow.key)));
  EXPECT_THAT(scoring.take(1, scores_of(slow)), IsEmpty());
  EXPECT_EQ(scoring.batches_done(), 1u);
}

TEST(Scoring, BrokenImagesAreLeftOutAndWithThemABatchOfNothingElse) {
  const auto dataset = images(3);
  Scoring scoring(options_on(dataset, 2));
  const auto leases = leases_in(scoring.give(1));
  scoring.take(1, Broken{leases.at(0).key, {{0, "no image"}}});
  scoring.take(1, Broken{leases.at(1).key, {{0, "no image"}}});
  EXPECT_EQ(scoring.batches_done(), 1u) << "image 2 was alone";
  const auto again = leases_in(scoring.give(1));
  ASSERT_THAT(again, SizeIs(1));
  scoring.take(1, scores_of(again[0]));
  EXPECT_TRUE(scoring.done());
  EXPECT_THAT(told(scoring), ElementsAre(1));
  EXPECT_THROW(
      {
        Scoring other(options_on(dataset, 2));
        const Lease lease = leases_in(other.give(1)).at(0);
        other.take(1, Broken{lease.key, {{2, "no image"}}});
      },
      InvalidInput);
}

TEST(Scoring, AWrongNumberOfValuesBreaksTheProtocol) {
  const auto dataset = images(2);
  Scoring scoring(options_on(dataset, 2));
  Scores scores = scores_of(leases_in(scoring.give(1)).at(0));
  scores.values.pop_back();
  EXPECT_THROW(scoring.take(1, scores), InvalidInput);
}

TEST(Scoring, AFailedReadGivesTheBatchBack) {
  const auto dataset = images(2);
  Scoring scoring(options_on(dataset, 2));
  const Lease lease = leases_in(scoring.give(1)).at(0);
  EXPECT_TRUE(scoring.read_failed(1, lease.key));
  EXPECT_FALSE(scoring.read_failed(1, lease.key)) << "nobody has it";
  EXPECT_EQ(leases_in(scoring.give(2)).at(0).key.index, lease.key.index);
}

// Workers come, die, repeat and send what nobody wants any more, at random: every image is scored
// once all the same.
TEST(Scoring, EveryImageIsScoredOnceWhateverWorkersDo) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed, RandomUse::kSyntheticData, 0);
    const auto dataset = images(static_cast<int>(random.below(40)) + 1);
    Scoring scoring(options_on(dataset, static_cast<uint32_t>(random.below(5)) + 1));
    std::map<WorkerId, std::vector<Lease>> in_hand;
    std::vector<std::pair<WorkerId, Lease>> gone;
    WorkerId next = 4;
    std::vector<WorkerId> alive{1, 2, 3};
    while (!scoring.done()) {
      const size_t which = random.below(static_cast<uint32_t>(alive.size()));
      const WorkerId worker = alive[which];
      for (const Lease& lease : leases_in(scoring.give(worker))) in_hand[worker].push_back(lease);
      auto& leases = in_hand[worker];
      if (random.below(10) == 0) {
        for (const Lease& lease : leases) gone.emplace_back(worker, lease);
        leases.clear();
        scoring.lose(worker);
        alive[which] = next++;
      } else if (!leases.empty()) {
        const Lease lease = leases[random.below(static_cast<uint32_t>(leases.size()))];
        std::erase_if(leases, [&](const Lease& one) { return one.key == lease.key; });
        for (const auto& other : scoring.take(worker, scores_of(lease)))
          std::erase_if(in_hand[other.first],
                        [&](const Lease& one) { return one.key == other.second; });
      }
      if (!gone.empty()) scoring.take(gone.back().first, scores_of(gone.back().second));
    }
    EXPECT_THAT(scoring.in_hand(), IsEmpty());
    const auto ids = told(scoring);
    ASSERT_EQ(ids.size(), dataset.size()) << "seed " << seed;
    for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], static_cast<float>(i));
  }
}

TEST(CoordinatorScoring, GoesToRemoteWorkersThatRunStemsAndTakesNoRoomOfTraining) {
  const auto dataset = images(8);
  fakes::FakeClock clock;
  Coordinator feed({.incarnation = 1, .total_steps = 10, .micro_batches = 2, .micro_batch = 2},
                   SampleOrder({.seed = 1, .samples = 8}), dataset, Plan{.number = 1});
  const WorkerId local = feed.add_worker({"local", true, true}, clock.now());
  const WorkerId other = feed.add_worker({"other processor", false, false}, clock.now());
  const WorkerId small = feed.add_worker({"small", false, true, false}, clock.now());
  EXPECT_EQ(feed.scorers(), 0u);
  const WorkerId scorer = feed.add_worker({"worker", false, true}, clock.now());
  EXPECT_EQ(feed.scorers(), 1u);
  feed.begin_scoring(options_on(dataset, 4), clock.now());
  std::vector<Lease> leases;
  for (const Outgoing& out : feed.take_outbox()) {
    EXPECT_THAT(out.to, testing::AllOf(testing::Ne(local), testing::Ne(other), testing::Ne(small)));
    if (const auto* lease = std::get_if<Lease>(&out.message)) leases.push_back(*lease);
  }
  ASSERT_THAT(leases, SizeIs(2));
  feed.receive(scorer, Pull{4}, clock.now());
  EXPECT_THAT(feed.take_outbox(), SizeIs(4)) << "as many of training as it asked for";
  feed.receive(scorer, scores_of(leases[0]), clock.now());
  feed.receive(scorer, scores_of(leases[1]), clock.now());
  ASSERT_NE(feed.scoring(), nullptr);
  EXPECT_TRUE(feed.scoring()->done());
  EXPECT_THAT(feed.end_scoring(), SizeIs(2));
  EXPECT_EQ(feed.scoring(), nullptr);
  feed.receive(scorer, scores_of(leases[0]), clock.now());
  EXPECT_EQ(feed.dropped_results(), 1u);
}

/// A worker that may not have the set that is scored.
class UnreadableScores : public testing::Test {
 protected:
  /// Scores that it is given meanwhile, each of which it cannot read.
  size_t fail_for(Duration time) {
    size_t given = 0;
    for (const TimePoint end = clock_.now() + time; clock_.now() < end;) {
      feed_.tick(clock_.now());
      for (const Outgoing& out : feed_.take_outbox()) {
        const auto* lease = std::get_if<Lease>(&out.message);
        if (lease == nullptr || lease->kind != WorkKind::kScore) continue;
        ++given;
        feed_.receive(worker_, ReadFailed{lease->key, "no such file"}, clock_.now());
      }
      clock_.advance(std::chrono::seconds(1));
    }
    return given;
  }
  const data::Dataset dataset_ = images(8);
  fakes::FakeClock clock_;
  Coordinator feed_{{.incarnation = 1,
                     .total_steps = 10,
                     .micro_batches = 2,
                     .micro_batch = 1,
                     .max_read_failures = 1,
                     .unreadable_after = std::chrono::seconds(1)},
                    SampleOrder({.seed = 1, .samples = 8}),
                    dataset_,
                    Plan{.number = 1}};
  const WorkerId worker_ = feed_.add_worker({"worker", false, true}, clock_.now());
};

TEST_F(UnreadableScores, AreTheServersAndTheWorkerIsAskedAgainMoreAndMoreSeldom) {
  using std::chrono::minutes;
  feed_.begin_scoring(options_on(dataset_, 2), clock_.now());
  EXPECT_EQ(feed_.scorers(), 1u);
  EXPECT_EQ(fail_for(minutes(5)), 2u) << "what it had in hand";
  EXPECT_EQ(feed_.scorers(), 0u) << "who waits for scores makes them itself";
  EXPECT_EQ(fail_for(minutes(10)), 2u);
  EXPECT_EQ(fail_for(minutes(20)), 2u);
  EXPECT_EQ(fail_for(minutes(30)), 2u) << "and not for 40 minutes";
  EXPECT_NO_THROW(feed_.throw_if_failed());
  EXPECT_EQ(feed_.scoring()->batches_done(), 0u);
}

TEST_F(UnreadableScores, KeepNoWorkerFromTraining) {
  feed_.begin_scoring(options_on(dataset_, 2), clock_.now());
  fail_for(std::chrono::seconds(1));
  feed_.receive(worker_, Pull{1}, clock_.now());
  const auto messages = feed_.take_outbox();
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(std::get<Lease>(messages[0].message).kind, WorkKind::kForward);
}

}  // namespace
}  // namespace outrigger::feed
