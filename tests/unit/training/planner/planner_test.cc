#include "training/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/random.h"
#include "tests/unit/training/planner/rates.h"
#include "training/simulator/trial.h"

namespace outrigger::training {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Two cuts behind "Input": layer1 takes a quarter off the device, layer2 a half for many bytes.
JobCosts two_cut_job() {
  JobCosts costs;
  costs.micro_batches = 8;
  costs.pixels = 1e6;
  costs.cuts.resize(3);
  costs.cuts[0].head = 0.4;
  costs.cuts[0].server_percent = 100;
  costs.cuts[1] = {.cut = 5,
                   .name = "layer1",
                   .trains = true,
                   .stem_forward = 0.04,
                   .stem_backward = 0.06,
                   .head = 0.3,
                   .activations = 4e6,
                   .gradients = 4e6,
                   .weights = 1e5,
                   .server_percent = 75};
  costs.cuts[2] = {.cut = 9,
                   .name = "layer2",
                   .trains = true,
                   .stem_forward = 0.08,
                   .stem_backward = 0.12,
                   .head = 0.2,
                   .activations = 2e6,
                   .gradients = 2e6,
                   .weights = 4e5,
                   .server_percent = 50};
  return costs;
}

Trial by_model_alone(const JobCosts&, uint64_t) { return by_model(); }

/// A job that runs as the model says, times a noise, under a planner.
class Drive {
 public:
  explicit Drive(PlannerOptions options = {}, Planner::Trials trials = by_model_alone)
      : planner_(two_cut_job(), options, std::move(trials)) {}

  void steps(uint64_t count, const std::vector<WorkerRates>& workers, double noise = 0) {
    for (uint64_t i = 0; i < count; ++i, ++step_) {
      double true_seconds = this->seconds(workers);
      // The server takes what nobody else runs, until the plan says so.
      if (!std::isfinite(true_seconds))
        true_seconds = predict(two_cut_job(), kServer, workers, {}).seconds;
      const double seconds = true_seconds * (1 + noise * (random_.uniform() - 0.5));
      planner_.measured(step_, present_, seconds, workers.size());
      const auto decision = planner_.consider(step_, kServer, workers);
      if (!decision) continue;
      present_ = decision->choice;
      reason_ = decision->reason;
      ++moves_;
    }
  }
  double seconds(const std::vector<WorkerRates>& workers) const {
    return predict(two_cut_job(), kServer, workers, present_).seconds;
  }
  const Choice& present() const { return present_; }
  const std::string& reason() const { return reason_; }
  int moves() const { return moves_; }

 private:
  Planner planner_;
  RandomStream random_{7, RandomUse::kBackOff, 7};
  Choice present_;
  uint64_t step_ = 0;
  std::string reason_;
  int moves_ = 0;
};

double best(const std::vector<WorkerRates>& workers) {
  double least = 1e9;
  for (const Candidate& one : candidates(two_cut_job(), {}, kServer, workers))
    least = std::min(least, one.prediction.seconds);
  return least;
}

TEST(Planner, FindsThePlanWithinAFewStepsAndSaysWhy) {
  const std::vector<WorkerRates> workers(4, kWorker);
  Drive drive;
  drive.steps(30, workers);
  EXPECT_LE(drive.seconds(workers), 1.05 * best(workers));
  EXPECT_GT(drive.present().away, 0u);
  EXPECT_THAT(drive.reason(), HasSubstr("stems away"));
  EXPECT_THAT(drive.reason(), HasSubstr("bound by"));
  EXPECT_THAT(drive.reason(), ContainsRegex("; that saves [0-9]+.[0-9] % where 5.8 % is enough; "))
      << "the margin, once more for stems that have not run";
}

TEST(Planner, WithoutWorkersTheServerDoesItAll) {
  Drive drive;
  drive.steps(100, {});
  EXPECT_EQ(drive.moves(), 0);
}

TEST(Planner, StaysWhereItIsUnderNoise) {
  const std::vector<WorkerRates> workers(4, kWorker);
  Drive drive;
  drive.steps(30, workers, 0.2);
  const int moves = drive.moves();
  drive.steps(1000, workers, 0.2);
  EXPECT_LE(drive.moves(), moves + 2);
}

/// A planner whose trials say that a split takes so many times as long as cut Input.
class Splits {
 public:
  explicit Splits(double times) : Splits(two_cut_job(), {times, times}) {}
  /// Behind the first cut, and the second.
  Splits(const JobCosts& job, std::array<double, 2> of_cuts, const PlannerOptions& options = {})
      : times(of_cuts), planner_(job, options, [this](const JobCosts&, uint64_t length) -> Trial {
          lengths.insert(length);
          return {[this](const Situation&, const Choice& choice) {
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
  double slower = 1;  // all machines, than they were
  std::vector<WorkerRates> workers = std::vector<WorkerRates>(4, kWorker);
  Choice present;
  int moves = 0;
  std::set<uint64_t> lengths;  // of the trials

 private:
  Planner planner_;
  uint64_t step_ = 0;
};

TEST(Planner, DoesNotGoBackForAFewStepsThatWereMadeAhead) {
  Splits run(0.85);
  for (const double seconds : {1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.24}) run.step(seconds);
  ASSERT_GT(run.present.away, 0u);
  for (int i = 0; i < 60; ++i) run.step(0.85 * Splits::kInput);
  EXPECT_EQ(run.moves, 1);
}

TEST(Planner, IsNotKeptInASplitByAPlainPlanThatIsHardlyBetter) {
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

TEST(Planner, TriesWhatTookMoreThanItPromisedAfterTwiceAsManyStepsEachTime) {
  for (const bool in_turn : {false, true}) {
    Splits run(two_cut_job(), {0.85, 0.84});
    const std::vector<int> at = tries(run, 8000, in_turn);
    ASSERT_GE(at.size(), 3u) << "it may be better by now";
    EXPECT_LE(at.size(), 6u) << "of either cut";
    for (size_t i = 1; i < at.size(); ++i)
      EXPECT_GE(at[i] - at[i - 1], 200 << i) << "at step " << at[i] << ", in turn: " << in_turn;
  }
}

TEST(Planner, ForgetsWhatDisappointedOnceMachinesAreOthers) {
  Splits run(0.85);
  ASSERT_GE(tries(run, 1500).size(), 2u);
  run.slower = 1.5;
  EXPECT_GE(tries(run, 60).size(), 1u);
}

TEST(Planner, TakesNoPlanForDisappointingSinceMachinesHaveBecomeSlower) {
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

TEST(Planner, GoesBackToNoSplitForLess) {
  Splits run(0.9);
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_GT(run.present.away, 0u);
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1 : 1.02) * Splits::kInput);
  EXPECT_EQ(run.present, Choice{}) << "two hundredths, less than the margin";
}

TEST(Planner, DoesNotGoBackToWhatRanWhileMachinesWereFaster) {
  Splits run(0.93);
  for (int i = 0; i < 40; ++i) run.step((run.present == Choice{} ? 1 : 0.93) * Splits::kInput);
  ASSERT_EQ(run.moves, 1);
  run.slower = 1.15;
  for (int i = 0; i < 40; ++i) run.step(run.slower * 0.93 * Splits::kInput);
  EXPECT_EQ(run.moves, 1) << "cut Input would be slower now, too";
}

TEST(Planner, DoesNotBlameFrozenStemsForGradients) {
  JobCosts job = two_cut_job();
  job.cuts[1].trains = false;
  Splits run(job, {0.8, 0.79});
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.present.cut, 2u);
  for (int i = 0; i < 60; ++i) run.step((run.present.cut == 2 ? 0.88 : 0.8) * Splits::kInput);
  EXPECT_EQ(run.present.cut, 1u);
  EXPECT_EQ(run.moves, 2);
}

TEST(Planner, ExpectsNoMoreOfTrainedStemsThanOfFrozenOnes) {
  JobCosts job = two_cut_job();
  job.cuts[1].trains = false;
  Splits run(job, {0.79, 0.8});
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.present.cut, 1u);
  for (int i = 0; i < 60; ++i) run.step((run.present == Choice{} ? 1 : 1.1) * Splits::kInput);
  EXPECT_EQ(run.present, Choice{});
  EXPECT_EQ(run.moves, 2);
}

TEST(Planner, BlamesOtherTrainedStemsForGradients) {
  Splits run(two_cut_job(), {0.8, 0.79});
  for (int i = 0; i < 12; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.present.cut, 2u);
  for (int i = 0; i < 60; ++i) run.step(0.88 * Splits::kInput);
  EXPECT_EQ(run.moves, 1) << "they are as far off: else plans were tried one by one";
}

TEST(Planner, DoesNotGoBackToWhatLivedOnWhatWasMadeAhead) {
  Splits run(0.92);
  for (int i = 0; i < 8; ++i)
    run.step(0.85 * Splits::kInput);  // cut Input, with a store from before
  ASSERT_GT(run.present.away, 0u);
  for (int i = 0; i < 60; ++i) run.step(0.92 * Splits::kInput);
  EXPECT_EQ(run.moves, 1);
}

TEST(Planner, WantsMoreOfStemsAwayUntilSomeHaveRun) {
  Splits run(0.95);
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

TEST(Planner, AsksNoMoreOfStemsThatHaveRunOnceTheirWorkersAreBack) {
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

TEST(Planner, AsksNoMoreOfACutThatIsNamed) {
  Splits run(two_cut_job(), {0.99, 0.99}, {.cut = 1});
  run.present = {.cut = 1};  // as such a job begins
  for (int i = 0; i < 30; ++i) run.step((run.present.away > 0 ? 0.99 : 1) * Splits::kInput);
  EXPECT_GT(run.present.away, 0u);
}

TEST(Planner, ExpectsWhatTheTrialSaysOfAKindThatHasNotRun) {
  Planner planner(two_cut_job(), {}, by_model_alone);
  const std::vector<WorkerRates> workers(4, kWorker);
  const double now = predict(two_cut_job(), kServer, workers, {}).seconds;
  std::optional<Decision> decision;
  for (uint64_t step = 0; !decision && step < 30; ++step) {
    planner.measured(step, {}, now, workers.size());
    decision = planner.consider(step, kServer, workers);
  }
  ASSERT_TRUE(decision);
  EXPECT_NEAR(decision->predicted,
              predict(two_cut_job(), kServer, workers, decision->choice).seconds, 1e-9);
}

TEST(Planner, LooksAgainSoonAfterAStart) {
  Splits run(1.1);
  for (int i = 0; i < 9; ++i) run.step(Splits::kInput);
  ASSERT_EQ(run.lengths.size(), 1u) << "it has looked";
  run.times = {0.8, 0.8};  // as trials say once machines are better known, by less than is news
  for (int i = 0; i < 30; ++i) run.step(Splits::kInput);
  EXPECT_GT(run.present.away, 0u);
}

TEST(Planner, TriesForAsLongAsStepsPayFor) {
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

TEST(Planner, KeepsLocalWhatWorkersWouldBringMuchTooLate) {
  WorkerRates narrow = kWorker;
  narrow.bytes_per_second = 1e4;
  const std::vector<WorkerRates> workers(2, narrow);
  constexpr double kAlways = 2.5;  // whatever workers bring, the server makes it before
  Planner planner(two_cut_job(), {}, [](const JobCosts&, uint64_t) -> Trial {
    return {[](const Situation&, const Choice&) { return kAlways; }, 20};
  });
  Choice present;
  int moves = 0;
  for (uint64_t step = 0; step < 300; ++step) {
    planner.measured(step, present, kAlways, workers.size());
    const auto decision = planner.consider(step, kServer, workers);
    if (!decision) continue;
    present = decision->choice;
    ++moves;
  }
  EXPECT_EQ(present, (Choice{0, 0, 8}));
  EXPECT_EQ(moves, 1);
}

/// A planner that was told what an earlier run had found.
class Again {
 public:
  explicit Again(const Choice& found, PlannerOptions options = {})
      : planner_(two_cut_job(), options, by_model_alone) {
    planner_.found_before(found);
  }
  /// One more step at cut Input, after which plans may be considered.
  std::optional<Choice> step(const std::vector<WorkerRates>& workers, bool considers = true) {
    const double seconds = predict(two_cut_job(), kServer, workers, {}).seconds;
    planner_.measured(step_, {}, seconds, workers.size());
    if (!considers) return std::nullopt;
    const auto decision = planner_.consider(step_++, kServer, workers);
    return decision ? std::optional(decision->choice) : std::nullopt;
  }

 private:
  Planner planner_;
  uint64_t step_ = 0;
};

const std::vector<WorkerRates> kFour(4, kWorker);
constexpr Choice kFound{1, 5, 0};

TEST(Planner, TakesAtOnceWhatAnEarlierRunHadFound) {
  EXPECT_EQ(Again(kFound).step(kFour), kFound);
  Again late(kFound);
  for (int i = 0; i < 20; ++i) late.step({});
  EXPECT_EQ(late.step(kFour), kFound) << "workers need a while to come back";
  Again slow(kFound);
  for (int i = 0; i < 20; ++i) slow.step(kFour, false);
  EXPECT_EQ(slow.step(kFour), kFound) << "their first results came late";
}

TEST(Planner, LeavesWhatAnEarlierRunHadFoundWhereItMayNotBeOrDoesNotPay) {
  WorkerRates narrow = kWorker;
  narrow.bytes_per_second = 3e6;
  const std::vector<WorkerRates> narrow_ones(4, narrow);
  Again does_not_pay(kFound);
  for (int i = 0; i < 20; ++i) EXPECT_NE(does_not_pay.step(narrow_ones), kFound);
  Again may_not_be(kFound, {.least_server_percent = 95});
  for (int i = 0; i < 20; ++i) EXPECT_NE(may_not_be.step(kFour), kFound);
}

TEST(Planner, FollowsWorkersThatLeaveAndCome) {
  const std::vector<WorkerRates> four(4, kWorker);
  Drive drive;
  drive.steps(30, four);
  drive.steps(20, {});
  EXPECT_EQ(drive.present(), Choice{});
  drive.steps(20, four);
  EXPECT_LE(drive.seconds(four), 1.05 * best(four));
}

TEST(Planner, GoesOnWhenTheLastWorkerLeavesThatRanItsStems) {
  const std::vector<WorkerRates> four(4, kWorker);
  Drive drive({}, by_simulation);
  drive.steps(30, four);
  ASSERT_GT(drive.present().away, 0u);
  drive.steps(20, {});
  EXPECT_EQ(drive.present().away, 0u);
}

TEST(Planner, LeavesAPlanThatMovesMoreThanItMay) {
  const std::vector<WorkerRates> four(4, kWorker);
  Drive free;
  free.steps(30, four);
  const double moves = traffic(two_cut_job(), free.present(), four).fuller() / free.seconds(four);
  Drive bound({.most_bytes_per_second = 0.5 * moves});
  bound.steps(60, four);
  const double within = traffic(two_cut_job(), bound.present(), four).fuller();
  EXPECT_LE(within, 0.5 * moves * bound.seconds(four));
  EXPECT_GT(bound.seconds(four), free.seconds(four));
}

TEST(Planner, LooksThoughRatesNeverStayAsTheyAre) {
  const std::vector<WorkerRates> steady(4, kWorker);
  std::vector<WorkerRates> wavering = steady;
  Drive drive;
  for (int i = 0; i < 10; ++i) {
    for (WorkerRates& one : wavering) one.decode = (i % 2 == 0 ? 1.5 : 0.8) * kWorker.decode;
    drive.steps(1, wavering);
  }
  EXPECT_GT(drive.present().away, 0u);
  EXPECT_LE(drive.seconds(steady), 1.1 * best(steady));
}

TEST(Planner, FollowsALinkThatNarrows) {
  std::vector<WorkerRates> workers(4, kWorker);
  for (WorkerRates& one : workers) one.bytes_per_second = 6e8;
  Drive drive;
  drive.steps(50, workers);
  EXPECT_THAT(drive.reason(), Not(HasSubstr("since plans were last compared")));
  for (WorkerRates& one : workers) one.bytes_per_second = 3e6;
  drive.steps(20, workers);
  EXPECT_LE(drive.seconds(workers), 1.05 * best(workers));
  EXPECT_THAT(drive.reason(), HasSubstr("a link works at 0.005 times its speed"));
}

TEST(Planner, SaysWhereTheServerMakesItsInputItself) {
  WorkerRates narrow = kWorker;
  narrow.bytes_per_second = 2e5;
  const std::vector<WorkerRates> workers(4, narrow);
  Drive drive;
  drive.steps(30, workers);
  EXPECT_GT(drive.present().local, 4u);
  EXPECT_THAT(drive.reason(), HasSubstr("inputs made by the server itself"));
}

TEST(Planner, KeepsTheCutAndTheShareThatTheUserFixed) {
  const std::vector<WorkerRates> workers(4, kWorker);
  Drive fixed_cut({.cut = 1});
  fixed_cut.steps(50, workers);
  EXPECT_EQ(fixed_cut.present().cut, 1u);
  Drive fixed_share({.away = 3});
  fixed_share.steps(50, workers);
  EXPECT_EQ(fixed_share.present().away, 3u);
}

TEST(Planner, LeavesTheServerItsLeastPart) {
  for (const Candidate& one :
       candidates(two_cut_job(), {.least_server_percent = 80}, kServer, std::vector(4, kWorker))) {
    const double away = 100 - two_cut_job().cuts[one.choice.cut].server_percent;
    EXPECT_LE(away * one.choice.away / 8, 20);
  }
}

}  // namespace
}  // namespace outrigger::training
