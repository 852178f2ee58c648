#include "training/planner/model/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/training/planner/rates.h"
#include "training/planner/planner.h"
#include "training/simulator/trial.h"

namespace outrigger::training {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

JobCosts large_job() {
  JobCosts costs = one_cut_job();
  costs.parameters = 40e6;
  costs.copies = 4;
  CutCosts& input = costs.cuts[0];
  input.head_kept = 200e6;
  input.head_fixed = 50e6;
  CutCosts& stem = costs.cuts[1];
  stem.weights = 1e6;
  stem.stem_kept = 100e6;
  stem.stem_fixed = 10e6;
  stem.head_kept = 100e6;
  stem.head_fixed = 45e6;
  stem.crossing = 8e6;
  return costs;
}

const std::vector<WorkerRates> kTwo(2, {.stem_speed = 4, .decode = 0.02});

TEST(Memory, OfTheServerIsTheSumOfItsParts) {
  EXPECT_NEAR(total(server_memory(large_job(), {}, 16)), 160e6 + 50e6 + 200e6 + 16e6, 1);
  // All stems away: neither their activations nor their work space are here.
  EXPECT_NEAR(total(server_memory(large_job(), {1, 8}, 16)),
              160e6 + 45e6 + 100e6 + 128e6 + 72e6 + 1e6, 1);
  EXPECT_GT(total(server_memory(large_job(), {1, 4}, 16)),
            total(server_memory(large_job(), {1, 8}, 16)));
}

TEST(Memory, OfAWorkerGrowsWithTheStemsThatWaitForAGradient) {
  const double alone = total(worker_memory(large_job(), {1, 8}, 1));
  const double of_four = total(worker_memory(large_job(), {1, 8}, 4));
  EXPECT_NEAR(alone - of_four, 5 * (101e6 + 8e6), 1);
  EXPECT_NEAR(total(worker_memory(large_job(), {}, 1)), 4e6, 1);
}

TEST(Memory, AMisfitSaysWhatIsNeededAndWhere) {
  ServerRates server{.cores = 2, .decode = 0.1, .memory = 100e6};
  EXPECT_THAT(misfit(large_job(), server, {}, {}),
              HasSubstr("needs 426 MB on the server, 100 are free"));
  server.memory = 1e9;
  EXPECT_THAT(misfit(large_job(), server, {}, {}), IsEmpty());
  std::vector<WorkerRates> workers = kTwo;
  workers[1].memory = 200e6;
  EXPECT_THAT(misfit(large_job(), server, workers, {1, 8}), IsEmpty()) << "the other runs stems";
  workers[0].memory = 300e6;
  EXPECT_THAT(misfit(large_job(), server, workers, {1, 8}),
              HasSubstr("needs 568 MB on a worker, 300 are free"));
  workers[0].memory = 600e6;
  EXPECT_THAT(misfit(large_job(), server, workers, {1, 8}),
              HasSubstr("needs 895 MB on a worker, 600 are free"))
      << "it would have them all";
  for (WorkerRates& worker : workers) worker.stems = false;
  EXPECT_THAT(misfit(large_job(), server, workers, {1, 6}), IsEmpty()) << "they run none";
}

TEST(Memory, StemsAreForThoseWorkersThatCanHoldThemAll) {
  const auto needs = [](const std::vector<double>& memory) {
    std::vector<WorkerRates> workers;
    for (const double one : memory) workers.push_back({.memory = one});
    return memory_for_stems(large_job(), workers, {1, 8});
  };
  const auto of = [](size_t workers) { return total(worker_memory(large_job(), {1, 8}, workers)); };
  ASSERT_NEAR(of(1), 895e6, 1e6);
  ASSERT_NEAR(of(2), 568e6, 1e6);
  EXPECT_NEAR(needs({600e6, 100e6, 600e6}), of(2), 1) << "two share them";
  EXPECT_NEAR(needs({100e6, 1e9}), of(1), 1) << "one has them all";
  EXPECT_EQ(needs({INFINITY, INFINITY}), 0) << "of none is known what it has";
  EXPECT_TRUE(std::isinf(needs({600e6, 100e6}))) << "which is too much for it";
  EXPECT_EQ(memory_for_stems(large_job(), {}, {}), 0) << "no stem is away";
}

TEST(Memory, AWorkerWithTooLittleOfItMakesPixelsInTheModelAndInVirtualTime) {
  const ServerRates server{.cores = 2, .decode = 0.1};
  const std::vector<WorkerRates> roomy(2, {.stem_speed = 0.3, .decode = 0.02});
  std::vector<WorkerRates> workers = roomy;
  workers[1].memory = 100e6;
  std::vector<WorkerRates> decoders = roomy;
  decoders[1].stems = false;
  const Choice choice{1, 6, 0};
  const JobCosts job = large_job();
  EXPECT_EQ(predict(job, server, workers, choice).seconds,
            predict(job, server, decoders, choice).seconds);
  EXPECT_LT(predict(job, server, roomy, choice).seconds,
            predict(job, server, workers, choice).seconds);
  const PlannerOptions options;
  const Trial trial = by_simulation(job);
  const auto tried = [&](const std::vector<WorkerRates>& of) {
    return trial.seconds({job, options, server, of}, choice);
  };
  EXPECT_EQ(tried(workers), tried(decoders));
  EXPECT_LT(tried(roomy), tried(workers));
}

TEST(Memory, PlansThatDoNotFitAreNoCandidates) {
  const ServerRates server{.cores = 2, .decode = 0.1};
  std::vector<WorkerRates> workers = kTwo;
  const auto roomy = candidates(large_job(), {}, server, workers);
  ASSERT_EQ(roomy.size(), 2u);
  for (WorkerRates& worker : workers) worker.memory = 400e6;
  const auto tight = candidates(large_job(), {}, server, workers);
  ASSERT_EQ(tight.size(), 2u);
  EXPECT_LT(tight[1].choice.away, roomy[1].choice.away);
  for (WorkerRates& worker : workers) worker.memory = 50e6;
  EXPECT_EQ(candidates(large_job(), {}, server, workers).size(), 1u);
}

}  // namespace
}  // namespace outrigger::training
