#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/training/planner/rates.h"
#include "training/planner/planner.h"

/// When the planner splits the work and when it takes that back.
namespace outrigger::training {
namespace {

/// A planner whose trials say that a split takes so many times as long as cut Input.
class Splits {
 public:
  explicit Splits(double times) : Splits(two_cut_job(), {times, times}) {}
  /// Behind the first cut, and the second.
  Splits(const JobCosts& job, std::array<double, 2> of_cuts, const PlannerOptions& options = {})
      : times(of_cuts), planner_(job, options, [this](const JobCosts&, uint64_t length) -> Trial {
          lengths.insert(length);
          return {[this](const Situation&, const Choice& choice) {
                    if (choice == Choice{}) return plain * kInput;
                    return choice.away > 0 ? times.at(choice.cut - 1) * kInput : kInput;
                  },
                  20};
        }) {}
  Splits(const Splits&) = delete;

  void step(double seconds) {
    planner_.measured(step_, present, seconds, workers.size());
    ServerRates server = kServer;
    server.cores /= slower;
    std::vector<WorkerRates> there = workers;
    for (WorkerRates& one : there) one.stem_speed /= slower;
    const auto decision = planner_.consider(step_++, server, there);
    if (!decision) return;
    present = decision->choice;
    ++moves;
  }

  static constexpr double kInput = 0.2;
  std::array<double, 2> times;
  double plain = 1;   // likewise, of the plan that keeps nothing
  double slower = 1;  // all machines, than they were
  std::vector<WorkerRates> workers = std::vector<WorkerRates>(4, kWorker);
  Choice present;
  int moves = 0;
  std::set<uint64_t> lengths;  // of the trials

 private:
  Planner planner_;
  uint64_t step_ = 0;
};

TEST(PlannerSplits, DoesNotGoBackForAFewStepsThatWereMadeAhead) {
  Splits run(0.85);
  for (const double seconds : {1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.24}) run.step(seconds);
  ASSERT_GT(run.present.away, 0u);
  for (int i = 0; i < 60; ++i) run.step(0.85 * Splits::kInput);
  EXPECT_EQ(run.moves, 1);
}

TEST(PlannerSplits, IsNotKeptInASplitByAPlainPlanThatIsHardlyBetter) {
  Splits run(two_cut_job(), {1.008, 0.973});
  run.present = {1, 4, 0};
  for (int i = 0; i < 60; ++i) run.step(run.times.at(run.present.cut - 1) * Splits::kInput);
  EXPECT_EQ(run.present.cut, 2u) << "better by the margin, though no split nearly is, too";
  EXPECT_EQ(run.moves, 1);
}

/// Steps of a run in which splits promise less than cut Input takes, and take 1.1 times that: those
/// at which one was tried. `in_turn`: the next one promises more at the other cut.
std::vector<int> tries(Splits& run, int steps, bool in_turn = false) {
  std::vector<int> at;
  for (int i = 0; i < steps; ++i) {
    const bool split = run.present.away > 0;
    run.step((split ? 1.1 : 1) * run.slower * Splits::kInput);
    if (split || run.present.away == 0) continue;
    at.push_back(i);
    if (in_turn) std::swap(run.times[0], run.times[1]);
  }
  return at;
}

TEST(PlannerSplits, TriesWhatTookMoreThanItPromisedAfterTwiceAsManyStepsEachTime) {
  for (const bool in_turn : {false, true}) {
    Splits run(two_cut_job(), {0.85, 0.84});
    const std::vector<int> at = tries(run, 8000, in_turn);
    ASSERT_GE(at.size(), 3u) << "it may be better by now";
    EXPECT_LE(at.size(), 6u) << "of either cut";
    for (size_t i = 1; i < at.size(); ++i)
      EXPECT_GE(at[i] - at[i - 1], 200 << i) << "at step " << at[i] << ", in turn: " << in_turn;
  }
}

TEST(PlannerSplits, ForgetsWhatDisappointedOnceMachinesAreOthers) {
  Splits run(0.85);
  ASSERT_GE(tries(run, 1500).size(), 2u);
  run.slower = 1.5;
  EXPECT_GE(tries(run, 60).size(), 1u);
}

TEST(PlannerSplits, TakesNoPlanForDisappointingSinceMachinesHaveBecomeSlower) {
  Splits run(0.85);
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1 : 0.85) * Splits::kInput);
  ASSERT_GT(run.present.away, 0u);
  run.slower = 1.5;
  run.times = {1.1, 1.1};
  tries(run, 60);
  ASSERT_EQ(run.present, Choice{});
  run.times = {0.85, 0.85};
  EXPECT_EQ(tries(run, 700).size(), 2u) << "only the first of these has disappointed";
}

TEST(PlannerSplits, DoesNotBelieveCutInputAnewEachTimeItWasForgotten) {
  Splits run(1.3);
  run.plain = 1.2;
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1.2 : 1) * Splits::kInput);
  ASSERT_GT(run.present.local, 0u);
  run.plain = 0.9;
  std::vector<int> at;
  for (int i = 0; i < 8000; ++i) {
    const bool plain = run.present == Choice{};
    run.step((plain ? 1.1 : 1) * Splits::kInput);
    if (!plain && run.present == Choice{}) at.push_back(i);
  }
  EXPECT_NE(run.present, Choice{});
  ASSERT_GE(at.size(), 2u) << "it may be better by now";
  for (size_t i = 1; i < at.size(); ++i) EXPECT_GE(at[i] - at[i - 1], 2000);
}

TEST(PlannerSplits, BelievesHalfOfWhatIsOffForStemsWhereThereAreNone) {
  for (const double took : {1.02, 1.4}) {  // where trials say 0.85, and 1 of cut Input
    Splits run(0.85);
    run.present = {1, 4, 0};
    for (int i = 0; i < 40; ++i) run.step((run.present.away > 0 ? took : 1) * Splits::kInput);
    EXPECT_EQ(run.present.away == 0, took > 1.2) << took;
  }
}

TEST(PlannerSplits, GoesBackToNoSplitForLess) {
  Splits run(0.9);
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_GT(run.present.away, 0u);
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1 : 1.02) * Splits::kInput);
  EXPECT_EQ(run.present, Choice{}) << "two hundredths, less than the margin";
}

TEST(PlannerSplits, DoesNotGoBackToWhatRanWhileMachinesWereFaster) {
  Splits run(0.93);
  for (int i = 0; i < 40; ++i) run.step((run.present == Choice{} ? 1 : 0.93) * Splits::kInput);
  ASSERT_EQ(run.moves, 1);
  run.slower = 1.15;
  for (int i = 0; i < 40; ++i) run.step(run.slower * 0.93 * Splits::kInput);
  EXPECT_EQ(run.moves, 1) << "cut Input would be slower now, too";
}

TEST(PlannerSplits, DoesNotBlameFrozenStemsForGradients) {
  JobCosts job = two_cut_job();
  job.cuts[1].trains = false;
  Splits run(job, {0.8, 0.79});
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.present.cut, 2u);
  for (int i = 0; i < 60; ++i) run.step((run.present.cut == 2 ? 0.88 : 0.8) * Splits::kInput);
  EXPECT_EQ(run.present.cut, 1u);
  EXPECT_EQ(run.moves, 2);
}

TEST(PlannerSplits, ExpectsNoMoreOfTrainedStemsThanOfFrozenOnes) {
  JobCosts job = two_cut_job();
  job.cuts[1].trains = false;
  Splits run(job, {0.79, 0.8});
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.present.cut, 1u);
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1 : 1.1) * Splits::kInput);
  EXPECT_EQ(run.present, Choice{});
  EXPECT_EQ(run.moves, 2);
}

TEST(PlannerSplits, BlamesOtherTrainedStemsForGradients) {
  Splits run(two_cut_job(), {0.8, 0.79});
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.present.cut, 2u);
  for (int i = 0; i < 60; ++i) run.step(0.88 * Splits::kInput);
  EXPECT_EQ(run.moves, 1) << "they are as far off: else plans were tried one by one";
}

TEST(PlannerSplits, DoesNotGoBackToWhatLivedOnWhatWasMadeAhead) {
  Splits run(0.92);
  for (int i = 0; i < 8; ++i)
    run.step(0.85 * Splits::kInput);  // cut Input, with a store from before
  ASSERT_GT(run.present.away, 0u);
  for (int i = 0; i < 60; ++i) run.step(0.92 * Splits::kInput);
  EXPECT_EQ(run.moves, 1);
}

TEST(PlannerSplits, WantsMoreOfStemsAwayUntilSomeHaveRun) {
  Splits run(0.96);
  for (int i = 0; i < 300; ++i) run.step(Splits::kInput);
  EXPECT_EQ(run.moves, 0) << "better by more than the margin, but in a trial only";
  run.times = {0.92, 0.92};
  for (int i = 0; i < 300; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.moves, 1);
  const Choice first = run.present;
  run.times = {0.88, 0.88};
  run.times.at(first.cut - 1) = 0.92;
  for (int i = 0; i < 300; ++i) run.step(0.92 * Splits::kInput);
  EXPECT_NE(run.present.cut, first.cut) << "the margin is enough from a split to another";
}

TEST(PlannerSplits, AsksNoMoreOfStemsThatHaveRunOnceTheirWorkersAreBack) {
  Splits run(0.92);
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1 : 0.92) * Splits::kInput);
  ASSERT_GT(run.present.away, 0u);
  const auto workers = std::exchange(run.workers, {});
  run.times = {2, 2};
  for (int i = 0; i < 30; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.present, Choice{});
  run.workers = workers;
  run.times = {0.955, 0.955};
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1 : 0.955) * Splits::kInput);
  EXPECT_GT(run.present.away, 0u);
}

TEST(PlannerSplits, AsksNoMoreOfACutThatIsNamed) {
  Splits run(two_cut_job(), {0.99, 0.99}, {.cut = 1});
  run.present = {.cut = 1};  // as such a job begins
  for (int i = 0; i < 30; ++i) run.step((run.present.away > 0 ? 0.99 : 1) * Splits::kInput);
  EXPECT_GT(run.present.away, 0u);
}

TEST(PlannerSplits, LooksAgainSoonAfterAStart) {
  Splits run(1.1);
  for (int i = 0; i < 9; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.lengths.size(), 1u) << "it has looked";
  run.times = {0.8, 0.8};  // as trials say once machines are better known, by less than is news
  for (int i = 0; i < 30; ++i) run.step(Splits::kInput);
  EXPECT_GT(run.present.away, 0u);
}

TEST(PlannerSplits, TriesForAsLongAsStepsPayFor) {
  Splits quick(0.85);
  for (int i = 0; i < 60; ++i) quick.step(Splits::kInput);
  EXPECT_EQ(quick.lengths, std::set<uint64_t>{1});
  Splits slow(0.85);
  for (int i = 0; i < 60; ++i) slow.step(0.7);  // 7 s between two moves, of which a look takes 3
  EXPECT_EQ(slow.lengths, std::set<uint64_t>{2});
  Splits slowest(0.85);
  for (int i = 0; i < 60; ++i) slowest.step(100);
  EXPECT_EQ(slowest.lengths, std::set<uint64_t>{4});
}

}  // namespace
}  // namespace outrigger::training
