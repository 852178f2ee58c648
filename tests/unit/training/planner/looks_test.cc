#include <gtest/gtest.h>

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
  constexpr double kSavedUp = 3;
  for (const double seconds : {0.01, 0.05, 0.25}) {
    const int looks = looks_in(kSteps, seconds);
    EXPECT_LE(looks, kSavedUp + 100 * kPartForLooks / seconds) << seconds;
    EXPECT_GT(looks, kSavedUp) << seconds;
  }
  EXPECT_LE(looks_in(kSteps, std::nullopt), kSavedUp + 100 / kSecondsALook);
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
