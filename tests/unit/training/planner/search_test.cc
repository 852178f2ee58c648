#include "training/planner/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "tests/unit/training/planner/rates.h"
#include "training/simulator/trial.h"

namespace outrigger::training {
namespace {

/// Eight micro-batches, three cuts behind "Input" of which each takes a tenth more off the device.
JobCosts four_cut_job(uint32_t micro_batches = 8) {
  JobCosts job;
  job.micro_batches = micro_batches;
  job.pixels = 1e6;
  for (int i = 0; i < 4; ++i) {
    job.cuts.push_back({.cut = i,
                        .trains = i > 0,
                        .stem_forward = 0.01 * i,
                        .stem_backward = 0.02 * i,
                        .head = 0.3 - 0.03 * i,
                        .activations = 1e6,
                        .gradients = 1e6,
                        .weights = 1e5,
                        .server_percent = 100.0 - 10 * i});
  }
  return job;
}

/// A machine of which only the trial knows what is fast; notes what was asked.
struct Oracle {
  double operator()(const Situation&, const Choice& choice) const {
    asked->insert(choice);
    const double cut = std::abs(static_cast<double>(choice.cut) - 2.0);
    const double away = std::abs(static_cast<double>(choice.away) - 5.0);
    const double local = std::abs(static_cast<double>(choice.local) - 1.0);
    return 1 + cut + 0.1 * away + 0.01 * local;
  }
  std::set<Choice>* asked;
};

class Search : public testing::Test {
 protected:
  std::optional<Candidate> run(const Trial& trial, const Choice& present = {}) {
    return search({job, options, kServer, workers}, present, trial);
  }
  JobCosts job = four_cut_job();
  PlannerOptions options;
  std::vector<WorkerRates> workers = std::vector<WorkerRates>(4, kWorker);
  std::set<Choice> asked;
};

TEST_F(Search, BelievesTheTrialRatherThanTheModel) {
  const auto found = run({Oracle{&asked}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choice, (Choice{2, 5, 1}));
  EXPECT_DOUBLE_EQ(found->prediction.seconds, 1);
}

TEST_F(Search, TriesToKeepLocalWhatTheServerMakesAnyway) {
  // The model sees nothing in it, and one or two kept local change nothing: no climb gets there.
  workers.assign(1, {.stem_speed = 1, .decode = 0.1, .bytes_per_second = 1e9});
  const ServerRates server{.cores = 10, .decode = 0.08, .shared = false};
  const Prediction told = predict(job, server, workers, {});
  ASSERT_EQ(static_cast<int>(told.local_input * 8), 3);
  ASSERT_EQ(best_local_input(job, server, workers, {}).local, 0u);
  const Trial trial{[](const Situation&, const Choice& choice) {
    return choice == Choice{.local = 4} ? 0.8 : 1.0;
  }};
  const auto found = search({job, options, server, workers}, {}, trial);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choice, Choice{.local = 4});
}

TEST_F(Search, OfTwoThatAreCloseALongerTrialDecides) {
  const Choice unsplit;
  const Choice split{1, 3, 0};
  Trial trial{[&](const Situation&, const Choice& choice) {
    return choice == unsplit ? 0.80 : choice == split ? 0.83 : 1.0;
  }};
  ASSERT_EQ(run(trial, split)->choice, unsplit);
  std::vector<Choice> finalists;
  trial.longer = [&](const Situation&, const Choice& choice) {
    finalists.push_back(choice);
    return choice == unsplit ? 0.9 : 0.85;
  };
  const auto found = run(trial, split);
  EXPECT_EQ(found->choice, split);
  EXPECT_DOUBLE_EQ(found->prediction.seconds, 0.85) << "stems count as the longer trial says";
  EXPECT_EQ(finalists, (std::vector{unsplit, split}));
}

/// By a trial in which all that is not named takes twice as long as the plain plan.
Choice winner(const Situation& in, const Choice& present, const std::map<Choice, double>& of,
              double to_plain = 0.99) {
  const Trial trial{[&of](const Situation&, const Choice& choice) {
    const auto named = of.find(choice);
    return named == of.end() ? 2.0 : named->second;
  }};
  return search(in, present, trial, to_plain)->choice;
}

TEST_F(Search, ThePlainPlanWinsWhereOthersPromiseHardlyMore) {
  const Situation in{job, options, kServer, workers};
  const Choice local{.local = 1};
  const Choice split{1, 8, 0};
  for (const Choice& other : {local, split}) {
    const auto beside = [&](double seconds) {
      return winner(in, {}, {{Choice{}, 1.0}, {other, seconds}});
    };
    EXPECT_EQ(beside(0.98), Choice{});
    EXPECT_EQ(beside(0.94), other);
  }
  options.cut = 1;
  EXPECT_EQ(winner(in, {}, {{Choice{}, 1.0}, {split, 0.98}}), split) << "who names a cut wants it";
}

TEST_F(Search, ThePlainPlanHidesNoBetterOneFromAPresentPlanThatIsNotLeftForIt) {
  const Situation in{job, options, kServer, workers};
  const Choice present{1, 3, 0};
  const Choice other{1, 8, 0};
  const auto with_plain = [&](double seconds, double to_plain) {
    return winner(in, present, {{present, 1.0}, {Choice{}, seconds}, {other, 0.968}}, to_plain);
  };
  EXPECT_EQ(with_plain(0.995, 0.99), other);
  EXPECT_EQ(with_plain(0.985, 0.99), Choice{});
  EXPECT_EQ(with_plain(0.985, 0.97), other);
  options.least_server_percent = 97;  // then the present plan may not go on
  EXPECT_EQ(winner(in, present, {{Choice{}, 1.0}, {Choice{.local = 1}, 0.98}}), Choice{});
}

TEST_F(Search, WhatPromisesHardlyMoreWinsWhereALongerTrialSaysThatItIsMuchMore) {
  const Choice split{1, 8, 0};
  Trial trial{[&](const Situation&, const Choice& choice) {
    return choice == Choice{} ? 1.0 : choice == split ? 0.98 : 2.0;
  }};
  for (const double longer : {0.98, 0.94}) {
    trial.longer = [&](const Situation&, const Choice& choice) {
      return choice == split ? longer : 1.0;
    };
    EXPECT_EQ(run(trial)->choice, longer < 0.97 ? split : Choice{}) << longer;
  }
}

TEST_F(Search, WhatTakesMuchLongerMayEndEarlyAndTheSamePlanWins) {
  double shortest = std::numeric_limits<double>::infinity();
  size_t early = 0;
  Trial trial{Oracle{&asked}};
  trial.within = [&](const Situation& in, const Choice& choice, double enough) {
    EXPECT_GE(enough, 1.1 * shortest);
    const double seconds = trial.seconds(in, choice);
    shortest = std::min(shortest, seconds);
    early += seconds > enough ? 1 : 0;
    return std::min(seconds, 1.001 * enough);
  };
  EXPECT_EQ(run(trial)->choice, (Choice{2, 5, 1}));
  EXPECT_GT(early, 0u);
}

TEST(BySimulation, EndsEarlyWhereAPlanTakesLongerThanIsEnough) {
  const JobCosts job = four_cut_job();
  const PlannerOptions options;
  const std::vector<WorkerRates> workers(2, kWorker);
  const Situation situation{job, options, kServer, workers};
  const Trial trial = by_simulation(job);
  for (const Choice& choice : {Choice{}, Choice{.local = 3}, Choice{1, 3}, Choice{2, 8}}) {
    const double seconds = trial.seconds(situation, choice);
    EXPECT_DOUBLE_EQ(trial.within(situation, choice, 1.01 * seconds), seconds) << "is waited for";
    for (const double part : {0.5, 0.7, 0.9}) {
      const double least = trial.within(situation, choice, part * seconds);
      EXPECT_GT(least, part * seconds);
      EXPECT_LE(least, 1.000001 * seconds) << "never more than it takes";
    }
  }
}

// lenet5 with a worker of a quarter of a core, as measured: the worker holds the first of the two
// up, and took 12 ms soon after.
TEST(BySimulation, OfTwoThatAreCloseTheOneIsBestThatASlowerWorkerDisturbsLess) {
  JobCosts job;
  job.micro_batches = 8;
  job.pixels = 25088;
  job.cuts = {{.head = 0.00153, .server_percent = 100}};
  const ServerRates server{.cores = 1.04, .decode = 0.00286, .shared = true};
  const std::vector<WorkerRates> workers{{.decode = 0.00934, .bytes_per_second = 8e8}};
  const PlannerOptions options;
  const Situation situation{job, options, server, workers};
  const Trial trial = by_simulation(job);
  ASSERT_LT(trial.seconds(situation, {.local = 5}), trial.seconds(situation, {.local = 6}));
  EXPECT_EQ(search(situation, {}, trial)->choice, Choice{.local = 6});
}

TEST_F(Search, WhatWinsByFarNeedsNoLongerTrial) {
  Trial trial{
      [](const Situation&, const Choice& choice) { return choice == Choice{} ? 0.8 : 1.0; }};
  trial.longer = [](const Situation&, const Choice&) -> double {
    ADD_FAILURE() << "was asked";
    return 1;
  };
  EXPECT_EQ(run(trial)->choice, Choice{});
}

TEST_F(Search, TriesAllStemsAwayThoughTheModelThinksLittleOfIt) {
  workers.assign(1, {.stem_speed = 0.05, .decode = 0.01, .bytes_per_second = 1e9});
  const auto rows = candidates(job, options, kServer, workers);
  const auto best = std::min_element(rows.begin() + 1, rows.end(), [](auto& one, auto& other) {
    return one.prediction.seconds < other.prediction.seconds;
  });
  ASSERT_LT(best->choice.away, 4u) << "no climb gets there";
  const Trial trial{
      [](const Situation&, const Choice& choice) { return choice.away == 8 ? 0.8 : 1.0; }, 20};
  const auto found = run(trial);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choice.cut, best->choice.cut);
  EXPECT_EQ(found->choice.away, 8u);
}

TEST_F(Search, TriesNoSplitWithItsLocalInputThoughTheModelPrefersManyCuts) {
  job.pixels = 1e7;
  while (job.cuts.size() < 8) job.cuts.push_back(job.cuts.back());
  const ServerRates server{.cores = 1, .decode = 0.01, .shared = false, .bytes_per_second = 1e7};
  auto rows = candidates(job, options, server, workers);
  const Choice unsplit = rows.front().choice;
  ASSERT_EQ(unsplit.cut, 0u);
  ASSERT_GT(unsplit.local, 2u) << "no climb gets there";
  for (size_t i = 1; i < rows.size(); ++i)
    ASSERT_LT(rows[i].prediction.seconds, rows.front().prediction.seconds) << i;
  const Trial trial{
      [&](const Situation&, const Choice& choice) { return choice == unsplit ? 0.8 : 1.0; }, 20};
  const auto found = search({job, options, server, workers}, {}, trial);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choice, unsplit);
}

TEST_F(Search, WhereLinksAreTheLimitTriesNoPixelsOnThem) {
  for (WorkerRates& worker : workers) worker.bytes_per_second = 1e6;
  for (CutCosts& cut : job.cuts) cut.activations = cut.gradients = 1e5;
  const auto no_pixels = [](const Choice& choice) {
    return choice.cut > 0 && choice.away == 4 && choice.local == 4;
  };
  const Trial trial{
      [&](const Situation&, const Choice& choice) { return no_pixels(choice) ? 0.8 : 1.0; }, 20};
  const auto found = run(trial);
  ASSERT_TRUE(found);
  EXPECT_TRUE(no_pixels(found->choice));
}

TEST_F(Search, AThoroughTrialIsWorthSharesThatLeaveSomethingForEachEnd) {
  job.micro_batches = 16;
  workers.assign(1, {.stem_speed = 0.05, .decode = 0.01, .bytes_per_second = 1e9});
  for (const uint32_t here : {2, 4}) {
    for (const uint32_t local : {0u, here}) {
      const auto wanted = [&](const Choice& choice) {
        return choice.away == 16 - here && choice.local >= local;
      };
      Trial trial{
          [&](const Situation&, const Choice& choice) { return wanted(choice) ? 0.8 : 1.0; }, 20};
      ASSERT_FALSE(wanted(run(trial)->choice)) << "the model would get there";
      trial.thorough = true;
      EXPECT_TRUE(wanted(run(trial)->choice)) << here << " stay, no pixels: " << (local > 0);
    }
  }
}

TEST_F(Search, ClimbsInTheSecondBestCutAsWell) {
  // Cut 1 begins where the model thinks it best, which is two micro-batches off.
  const auto rows = candidates(job, options, kServer, workers);
  const uint32_t start = rows.at(1).choice.away;
  const uint32_t best = start >= 3 ? start - 2 : start + 2;
  const Trial trial{[&](const Situation&, const Choice& choice) {
                      if (choice.cut != 1) return choice.cut == 3 ? 1.0 : 2.0;
                      return 0.9 + 0.1 * std::abs(static_cast<double>(choice.away) - best);
                    },
                    20};
  const auto found = run(trial);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choice.cut, 1u);
  EXPECT_EQ(found->choice.away, best);
}

TEST_F(Search, AsksNoMoreThanItMay) {
  for (const size_t most : {1, 6, 20}) {
    asked.clear();
    ASSERT_TRUE(run({Oracle{&asked}, most}));
    EXPECT_LE(asked.size(), most);
  }
}

TEST_F(Search, IsNeverWorseThanThePresentPlanOrNoSplit) {
  const Choice present{3, 1, 0};
  const auto found = run({Oracle{&asked}, 2}, present);
  ASSERT_TRUE(found);
  EXPECT_EQ(asked, (std::set<Choice>{{}, present}));
  EXPECT_EQ(found->choice, present);  // 2.41 against 3.51 at cut Input
}

TEST_F(Search, StaysAmongEquals) {
  const Choice present{1, 3, 0};
  const auto found = run({[](const Situation&, const Choice&) { return 1.0; }}, present);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choice, present);
}

TEST_F(Search, TriesOnlyWhatTheOptionsAllow) {
  options = {.cut = 1, .away = 3, .least_server_percent = 90};
  ASSERT_TRUE(run({Oracle{&asked}}, {2, 5, 0}));
  for (const Choice& choice : asked) {
    if (choice.cut == 0) continue;
    EXPECT_EQ(choice.cut, 1u);
    EXPECT_EQ(choice.away, 3u);
  }
}

TEST_F(Search, KeepsToTheBytesASecondThatTheOptionsAllow) {
  for (const double most : {1e5, 3e6, 1e7, 1e9}) {
    options.most_bytes_per_second = most;
    const auto found = run(by_model());
    ASSERT_TRUE(found) << most;
    EXPECT_LE(traffic(job, found->choice, workers).fuller(), most * found->prediction.seconds)
        << most;
    for (const Candidate& row : tried_candidates({job, options, kServer, workers}, by_model()).rows)
      EXPECT_LE(traffic(job, row.choice, workers).fuller(), most * row.prediction.seconds) << most;
  }
  options.most_bytes_per_second = 1;
  const Choice all_local{.local = 8};
  EXPECT_EQ(run(by_model())->choice, all_local);
  options.most_bytes_per_second = 1e9;
  EXPECT_NE(run(by_model())->choice, all_local);
}

TEST_F(Search, FindsTheSplitThatABoundLeavesOfACut) {
  const Choice least{1, 1, 7};
  const ServerRates server{.cores = 1, .decode = 1e-3};
  const Situation in{job, options, server, workers};
  const double seconds = predict(in, least).seconds;
  ASSERT_LT(seconds, predict(in, {}).seconds);
  options = {.cut = 1,
             .most_bytes_per_second = 1.01 * traffic(job, least, workers).fuller() / seconds};
  EXPECT_EQ(search(in, {}, by_model())->choice, least);
}

TEST_F(Search, APlanThatTheUserFixesKeepsNothingLocal) {
  job.pixels = 1e7;
  const ServerRates server{.cores = 1, .decode = 0.01, .shared = false, .bytes_per_second = 1e7};
  const auto most_local = [&] {
    uint32_t most = 0;
    for (const Candidate& row : tried_candidates({job, options, server, workers}, by_model()).rows)
      most = std::max(most, row.choice.local);
    return most;
  };
  ASSERT_GT(most_local(), 0u) << "links are narrow, and the plan is open";
  for (const PlannerOptions& fixed :
       {PlannerOptions{.cut = 0}, PlannerOptions{.cut = 1, .away = 3}}) {
    options = fixed;
    EXPECT_EQ(most_local(), 0u);
    run({Oracle{&asked}});
    for (const Choice& choice : asked) EXPECT_EQ(choice.local, 0u);
  }
  options = {.cut = 1};  // its share is left open
  EXPECT_GT(most_local(), 0u);
}

TEST_F(Search, ACutThatTheCostsLackLeavesNoSplit) {
  options.cut = job.cuts.size();
  EXPECT_EQ(run({Oracle{&asked}}, {1, 3, 0})->choice.cut, 0u);
}

TEST(Traffic, IsTheFullerDirections) {
  JobCosts job = four_cut_job();
  std::vector<WorkerRates> workers(4, kWorker);
  EXPECT_DOUBLE_EQ(traffic(job, {}, workers).fuller(), 8e6) << "pixels";
  EXPECT_DOUBLE_EQ(traffic(job, {.local = 3}, workers).fuller(), 5e6);
  EXPECT_DOUBLE_EQ(traffic(job, {2, 5, 1}, workers).fuller(), 2e6 + 5 * (1e6 + 1e5))
      << "and stems' gradients";
  job.cuts[2].gradients = 4e6;
  EXPECT_DOUBLE_EQ(traffic(job, {2, 8, 0}, workers).fuller(), 8 * 4e6 + 4 * 1e5)
      << "weights for each";
  EXPECT_DOUBLE_EQ(traffic(job, {2, 3, 0}, workers).fuller(), 3 * 4e6 + 3 * 1e5)
      << "that has a stem";
  workers[0].stems = false;
  EXPECT_DOUBLE_EQ(traffic(job, {2, 8, 0}, workers).fuller(), 8 * 4e6 + 3 * 1e5)
      << "that may have one";
}

TEST_F(Search, FindsNothingWhereNothingIsPossible) {
  const auto never = [](const Situation&, const Choice&) {
    return std::numeric_limits<double>::infinity();
  };
  EXPECT_FALSE(run({never}));
}

TEST_F(Search, PutsWhatItFindsInTheRowOfItsCut) {
  const auto [rows, at] = tried_candidates({job, options, kServer, workers}, {Oracle{&asked}});
  EXPECT_EQ(at, 2u);
  ASSERT_EQ(rows.size(), job.cuts.size());
  EXPECT_EQ(rows[2].choice, (Choice{2, 5, 1}));
  EXPECT_DOUBLE_EQ(rows[2].prediction.seconds, 1);
  for (const Candidate& row : rows)
    EXPECT_DOUBLE_EQ(row.prediction.seconds,
                     Oracle{&asked}({job, options, kServer, workers}, row.choice));
}

TEST(BySimulation, TellsWhatALongRunTakes) {
  const JobCosts job = four_cut_job();
  const std::vector<WorkerRates> workers(4, kWorker);
  const PlannerOptions options;
  const Trial trial = by_simulation(job);
  // A server alone makes its pixels and runs the whole net, one after the other.
  const double alone = trial.seconds({job, options, kServer, {}}, {});
  EXPECT_NEAR(alone, predict(job, kServer, {}, {}).seconds, 0.05 * alone);
  const double helped = trial.seconds({job, options, kServer, workers}, {});
  EXPECT_LT(helped, alone);
}

TEST(BySimulation, DoesNotCountOnWhatTheServerMadeAhead) {
  JobCosts job;
  job.micro_batches = 8;
  job.pixels = 1.4e6;
  job.cuts = {{.head = 0.465, .server_percent = 100}};
  const ServerRates server{.cores = 138, .decode = 0.0076, .shared = false};
  std::vector<WorkerRates> workers;
  for (const double decode : {0.0215, 0.0259, 0.0299, 0.0416, 0.0297, 0.0511})
    workers.push_back({.decode = decode, .bytes_per_second = 1.7e9, .latency = 0.001});
  const PlannerOptions options;
  const Trial trial = by_simulation(job);
  const auto seconds = [&](uint32_t local) {
    return trial.seconds({job, options, server, workers}, {.local = local});
  };
  EXPECT_GE(seconds(4), 4 * server.decode);
  EXPECT_LT(seconds(3), seconds(4)) << "the device takes no longer than 27 ms";
}

TEST(BySimulation, IsInfiniteWhereNobodyRunsTheStems) {
  const JobCosts job = four_cut_job();
  WorkerRates decoder = kWorker;
  decoder.stems = false;
  const std::vector<WorkerRates> decoders(2, decoder);
  const std::vector<WorkerRates> none;
  const PlannerOptions options;
  const Trial trial = by_simulation(job);
  for (const std::vector<WorkerRates>& workers : {none, decoders})
    EXPECT_FALSE(std::isfinite(trial.seconds({job, options, kServer, workers}, {2, 3, 0})));
}

TEST(BySimulation, IsThoroughWhereStepsPayForLongTrials) {
  EXPECT_FALSE(by_simulation(four_cut_job()).thorough);
  EXPECT_TRUE(by_simulation(four_cut_job(), 2).thorough);
}

TEST(BySimulation, GivesWayToTheModelWhereItWouldTakeTooLong) {
  EXPECT_LT(by_simulation(four_cut_job(8)).most, by_model().most);
  EXPECT_EQ(by_simulation(four_cut_job(512)).most, by_model().most);
}

}  // namespace
}  // namespace outrigger::training
