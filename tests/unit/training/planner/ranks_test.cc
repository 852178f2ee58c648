#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/unit/training/planner/rates.h"
#include "training/planner/planner.h"

/// One plan for several ranks, each with workers of its own.
namespace outrigger::training {
namespace {

class Ranks : public testing::Test {
 protected:
  std::optional<Candidate> found(const std::vector<WorkerRates>& first,
                                 const std::vector<RankRates>& others = {}) {
    return search({job_, options_, kServer, first, others}, {}, by_model());
  }

  /// What the trials of a planner are told, once it compares plans.
  struct Told {
    size_t others = 0;
    WorkerRates worker;
  };
  Told told(const std::vector<RankRates>& others) {
    Told told;
    Planner planner(job_, options_, [&](const JobCosts&, uint64_t) -> Trial {
      return {[&](const Situation& in, const Choice&) {
                told = {in.others.size(), in.workers.front()};
                return 1.0;
              },
              20};
    });
    for (uint64_t step = 0; step < 20; ++step) {
      planner.measured(step, {}, 1.0, 8);
      EXPECT_FALSE(planner.consider(step, kServer, workers_, others));
    }
    EXPECT_GT(told.worker.stem_speed, 0) << "plans were compared";
    return told;
  }

  const JobCosts job_ = one_cut_job();
  PlannerOptions options_;
  std::vector<WorkerRates> workers_{kWorker, {.stem_speed = 2, .decode = 0.02}};
};

TEST_F(Ranks, ThatTakeTheLongestArePlannedFor) {
  const std::vector<WorkerRates> four(4, kWorker);
  const std::vector<WorkerRates> one{{.stem_speed = 0.3, .decode = 0.05}};
  const auto alone = found(four);
  ASSERT_GT(alone->choice.away, 0u);
  const auto beside = found(four, {{kServer, one}});
  EXPECT_EQ(beside->choice, found(one)->choice);
  EXPECT_EQ(beside->prediction.seconds, found(one)->prediction.seconds);
  EXPECT_GT(beside->prediction.seconds, alone->prediction.seconds);
  EXPECT_EQ(found(four, {{kServer, {}}})->choice, Choice{}) << "nobody runs its stems";
}

TEST_F(Ranks, ThatAreAlikeAreTriedOnce) {
  std::vector<WorkerRates> reversed(workers_.rbegin(), workers_.rend());
  EXPECT_EQ(told({{kServer, workers_}, {kServer, reversed}}).others, 0u);
  reversed.front().stem_speed = 0.5;
  EXPECT_EQ(told({{kServer, workers_}, {kServer, reversed}}).others, 1u);
  reversed = workers_;
  reversed.front().latency = 0.1;
  EXPECT_EQ(told({{kServer, reversed}}).others, 1u);
}

TEST_F(Ranks, ThatAreAlikeAreTriedWithTheLeastMemory) {
  std::vector<WorkerRates> small = workers_;
  small.front().memory = 1e9;
  const Told seen = told({{kServer, small}});
  EXPECT_EQ(seen.others, 0u);
  EXPECT_EQ(seen.worker.memory, 1e9);
  std::swap(small.front().memory, small.back().memory);
  EXPECT_TRUE(std::isinf(told({{kServer, small}}).worker.memory)) << "it is the other's";
  std::vector<WorkerRates> smaller = small;
  smaller.back().memory = 0.5e9;
  workers_ = small;
  EXPECT_EQ(told({{kServer, smaller}}).others, 1u);
}

}  // namespace
}  // namespace outrigger::training
