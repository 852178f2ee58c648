#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/unit/training/planner/rates.h"
#include "training/planner/planner.h"

namespace outrigger::training {
namespace {

/// How often plans are compared in so many steps of 20 ms in which there is always news, where a
/// comparison takes so long.
int looks_in(int steps, std::optional<double> seconds) {
  Planner planner(one_cut_job(), {}, [](const JobCosts&, uint64_t) { return by_model(); });
  int looks = 0;
  Choice present;
  std::vector<WorkerRates> workers(4, kWorker);
  for (int step = 0; step < steps; ++step) {
    workers[0].decode = (step / 20 % 2 == 0 ? 3 : 1) * kWorker.decode;
    planner.measured(static_cast<uint64_t>(step), present, 0.02, workers.size());
    const auto decision = planner.consider(static_cast<uint64_t>(step), kServer, workers);
    if (decision) present = decision->choice;
    if (!planner.has_looked()) continue;
    ++looks;
    if (seconds) planner.took(*seconds);
  }
  return looks;
}

TEST(Looks, AreAsFewAsTheyMustBeWhereEachTakesLong) {
  constexpr int kSteps = 5000;  // 100 s
  constexpr double kSavedUp = 6;
  for (const double seconds : {0.01, 0.05, 0.25}) {
    const int looks = looks_in(kSteps, seconds);
    EXPECT_LE(looks, kSavedUp + 100 * kPartForLooks / seconds) << seconds;
    EXPECT_GE(looks, kSavedUp) << seconds << ": machines change all the time";
  }
  EXPECT_LE(looks_in(kSteps, std::nullopt), kSavedUp + 100 / kSecondsALook);
}

/// Of machines alone, as when a worker that held nothing up is as fast as before again, or of
/// steps.
class SuddenChange : public testing::TestWithParam<bool> {};

TEST_P(SuddenChange, ThatLastsHasThreeLooksLeft) {
  const bool of_machines = GetParam();
  Planner planner(one_cut_job(), {}, [](const JobCosts&, uint64_t) -> Trial {
    return {[](const Situation&, const Choice&) { return 1.0; }, 20};
  });
  std::vector<WorkerRates> workers(4, kWorker);
  uint64_t step = 0;
  std::vector<uint64_t> when;
  const auto looks_in_steps = [&](uint64_t count, const auto& seconds) {
    int looks = 0;
    for (const uint64_t end = step + count; step < end; ++step) {
      planner.measured(step, {}, seconds(step), workers.size());
      static_cast<void>(planner.consider(step, kServer, workers));
      if (!planner.has_looked()) continue;
      ++looks;
      when.push_back(step);
      planner.took(100);  // so that none can be saved up
    }
    return looks;
  };
  // Every 40 steps something is a little different, which may be looked at three times.
  EXPECT_EQ(looks_in_steps(400, [](uint64_t at) { return 0.02 * (1 + 0.1 * (at / 40 % 2)); }), 3);
  EXPECT_EQ(looks_in_steps(1, [](uint64_t) { return 0.1; }), 0);
  EXPECT_EQ(looks_in_steps(60, [](uint64_t) { return 0.02; }), 0) << "it was one step";
  workers.front().decode /= 3;
  EXPECT_EQ(looks_in_steps(2, [](uint64_t) { return 0.02; }), 0);
  workers.front().decode *= 3;
  EXPECT_EQ(looks_in_steps(60, [](uint64_t) { return 0.02; }), 0) << "they were others for two";
  if (of_machines) workers.front().decode /= 3;
  const double then = of_machines ? 0.02 : 0.05;
  const int looks = looks_in_steps(20, [&](uint64_t) { return then; });
  EXPECT_GE(looks, 1);
  EXPECT_EQ(looks + looks_in_steps(45, [&](uint64_t) { return 1.1 * then; }), 3)
      << "at what has come of the first, and once more is known, though neither is sudden";
  const uint64_t last = when.back();
  const uint64_t second = when.at(when.size() - 2);
  EXPECT_GE(second, when.at(when.size() - 3) + 6) << "no sooner than it shows";
  EXPECT_GE(last, second + PlannerOptions{}.dwell);
  EXPECT_LE(last, second + 25);
  EXPECT_EQ(looks_in_steps(60, [](uint64_t) { return 0.01; }), 0) << "then none is left";
}
INSTANTIATE_TEST_SUITE_P(Looks, SuddenChange, testing::Bool());

TEST(Looks, AreNotPutOffForEverByWorkersThatComeAndGo) {
  Planner planner(one_cut_job(), {}, [](const JobCosts&, uint64_t) { return by_model(); });
  int looks = 0;
  for (uint64_t step = 0; step < 500; ++step) {
    const std::vector<WorkerRates> workers(4 + step / 6 % 2, kWorker);
    planner.measured(step, {}, 1, workers.size());
    static_cast<void>(planner.consider(step, kServer, workers));
    looks += planner.has_looked() ? 1 : 0;
  }
  EXPECT_GT(looks, 4);
}

TEST(Looks, AreForNothingWhereNobodyIsThereToTakeWork) {
  Planner planner(one_cut_job(), {}, [](const JobCosts&, uint64_t) { return by_model(); });
  for (uint64_t step = 0; step < 100; ++step) {
    planner.measured(step, {}, 1, 0);
    EXPECT_FALSE(planner.consider(step, kServer, {}));
    EXPECT_FALSE(planner.has_looked());
  }
}

/// Steps of 20 ms until plans are compared, once this many of so many workers have changed from
/// `before` to `now`; nothing: they are not, within 60.
std::optional<uint64_t> steps_until_look(const WorkerRates& before, const WorkerRates& now,
                                         size_t changed, size_t all) {
  Planner planner(one_cut_job(), {}, [](const JobCosts&, uint64_t) -> Trial {
    return {[](const Situation&, const Choice&) { return 1.0; }, 20};
  });
  std::vector<WorkerRates> workers(all, before);
  constexpr uint64_t kChange = 400;
  for (uint64_t step = 0; step < kChange + 60; ++step) {
    if (step == kChange) std::fill_n(workers.begin(), changed, now);
    // What is a little different from time to time uses looks up.
    planner.measured(step, {}, 0.02 * (1 + 0.1 * static_cast<double>(step / 40 % 2)), all);
    static_cast<void>(planner.consider(step, kServer, workers));
    if (!planner.has_looked()) continue;
    if (step >= kChange) return step - kChange;
    planner.took(100);
  }
  return std::nullopt;
}

/// A worker that is three times as fast.
WorkerRates fast() {
  WorkerRates rates = kWorker;
  rates.decode /= 3;
  return rates;
}

/// A worker whose link takes so much of the time that it decodes for.
WorkerRates linked(double part) {
  WorkerRates rates = kWorker;
  rates.bytes_per_second = one_cut_job().pixels / (part * rates.decode);
  return rates;
}

TEST(Looks, AreAsSoonAsASuddenChangeHasLastedForThreeSteps) {
  const auto steps = steps_until_look(kWorker, fast(), 1, 4);
  ASSERT_TRUE(steps);
  EXPECT_LE(*steps, 3u);
}

TEST(Looks, AreNotTakenForOneOfManyWorkers) {
  EXPECT_FALSE(steps_until_look(kWorker, fast(), 1, 32));
  EXPECT_TRUE(steps_until_look(kWorker, fast(), 8, 32));
}

// On a link that is hardly used what it could carry is measured by little, and wavers.
TEST(Looks, AreTakenForLinksWhereTheyHoldWorkUp) {
  EXPECT_FALSE(steps_until_look(linked(0.01), linked(0.1), 4, 4));
  EXPECT_FALSE(steps_until_look(linked(0.1), linked(0.01), 4, 4));
  EXPECT_TRUE(steps_until_look(linked(0.2), linked(0.8), 4, 4)) << "a quarter of the rate";
  EXPECT_TRUE(steps_until_look(linked(2), linked(0.5), 4, 4)) << "four times the rate";
}

TEST(Looks, AreFewerAndFewerWhereThereIsNoNews) {
  Planner planner(one_cut_job(), {}, [](const JobCosts&, uint64_t) -> Trial {
    return {[](const Situation&, const Choice&) { return 1.0; }, 20};
  });
  const std::vector<WorkerRates> workers(4, kWorker);
  std::vector<uint64_t> looks;
  for (uint64_t step = 0; step < 1000; ++step) {
    planner.measured(step, {}, 1.0, workers.size());
    EXPECT_FALSE(planner.consider(step, kServer, workers));
    if (planner.has_looked()) looks.push_back(step);
  }
  EXPECT_EQ(looks, (std::vector<uint64_t>{7, 32, 82, 182, 382, 582, 782, 982}));
}

}  // namespace
}  // namespace outrigger::training
