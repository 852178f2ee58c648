#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/error.h"
#include "tests/unit/training/planner/rates.h"
#include "training/planner/model/step_model.h"
#include "training/simulator/cluster.h"

namespace outrigger::training {
namespace {

using testing::HasSubstr;

SimulatedCluster cluster(size_t workers) {
  SimulatedCluster described;
  described.server = kServer;
  for (size_t i = 0; i < workers; ++i) {
    described.workers.push_back({.name = "w" + std::to_string(i), .rates = kWorker});
  }
  return described;
}

std::vector<WorkerRates> rates(const SimulatedCluster& described) {
  std::vector<WorkerRates> all;
  for (const SimulatedWorker& worker : described.workers) all.push_back(worker.rates);
  return all;
}

void expect_as_predicted(const JobCosts& costs, const SimulatedCluster& described,
                         const Choice& choice, double tolerance) {
  const auto simulated = simulate(costs, described, {.steps = 40, .jitter = 0, .fixed = choice});
  const double seconds = simulated.mean_seconds(10, 40);
  const double predicted = predict(costs, described.server, rates(described), choice).seconds;
  EXPECT_NEAR(seconds, predicted, tolerance * predicted)
      << "cut " << choice.cut << ", " << choice.away << " away, " << described.workers.size()
      << " workers";
}

TEST(Simulate, TakesAsLongAsTheStepModelSays) {
  for (const size_t workers : {0u, 1u, 2u, 4u, 8u}) {
    expect_as_predicted(one_cut_job(), cluster(workers), {}, 0.05);
    if (workers == 0) continue;
    for (const uint32_t away : {2u, 4u, 8u})
      expect_as_predicted(one_cut_job(), cluster(workers), {1, away}, 0.1);
  }
}

TEST(Simulate, AWorkerWithRoomForMoreLeasesHidesMoreOfItsLinksDelay) {
  auto described = cluster(1);
  described.server = {.cores = 1000, .decode = 10, .shared = false};
  described.workers[0].rates.latency = 0.3;
  const auto seconds = [&] {
    return simulate(one_cut_job(), described, {.steps = 40, .jitter = 0, .fixed = Choice{}})
        .mean_seconds(10, 40);
  };
  const double few = seconds();
  described.workers[0].rates.leases = 16;
  EXPECT_LT(seconds(), 0.7 * few);
}

TEST(Simulate, LinksTakeAsMuchOfTheCoresAsTheStepModelSays) {
  for (const bool shared : {true, false}) {
    for (const size_t workers : {1u, 2u, 4u}) {
      auto described = cluster(workers);
      described.server.shared = shared;
      expect_as_predicted(one_cut_job_with_link_work(), described, {}, 0.05);
      for (const uint32_t away : {2u, 4u, 8u}) {
        expect_as_predicted(one_cut_job_with_link_work(), described, {1, away}, 0.1);
        expect_as_predicted(one_cut_job_with_link_work(false), described, {1, away}, 0.1);
      }
    }
  }
}

TEST(Simulate, LinksTakeOfTheServersOwnCoresWhereTheDeviceIsAnother) {
  auto described = cluster(2);
  described.server = {.cores = 20, .decode = 0.4, .shared = false, .own_cores = 0.1};
  for (SimulatedWorker& worker : described.workers) worker.rates.decode = 0.01;
  JobCosts costs = one_cut_job();
  costs.link_work.byte = 1e-8;  // ten milliseconds for the pixels of a micro-batch
  expect_as_predicted(costs, described, {}, 0.05);
  const double slow = predict(costs, described.server, rates(described), {}).seconds;
  EXPECT_GT(slow, 8 * 0.01 / 0.1) << "all of what comes goes through a tenth of a core";
}

TEST(Simulate, ADeviceOfItsOwnIsNotHeldUpByDecoding) {
  auto own = cluster(1);
  own.server.shared = false;
  expect_as_predicted(one_cut_job(), own, {}, 0.05);
}

TEST(Simulate, AnOwnWorkerWithManyCoresRunsStemsWhileTheDeviceWaits) {
  auto described = cluster(1);
  described.server = {.cores = 11, .decode = 0.007, .shared = false, .own_cores = 8};
  described.workers[0].rates.bytes_per_second = 20e6;
  JobCosts costs = one_cut_job();
  costs.cuts[1].gradients = 4e4;
  const double with = predict(costs, described.server, rates(described), {1, 7}).seconds;
  expect_as_predicted(costs, described, {1, 7}, 0.1);
  described.server.own_cores = 0.01;
  EXPECT_LT(with, 0.75 * predict(costs, described.server, rates(described), {1, 7}).seconds);
}

TEST(Simulate, AnOwnWorkerIsNoFasterThanItsOwnCores) {
  auto described = cluster(1);
  described.workers[0].rates.bytes_per_second = 20e6;
  const auto seconds = [&](double cores, double own) {
    described.server = {.cores = cores, .decode = 0.1, .shared = false, .own_cores = own};
    return simulate(one_cut_job(), described, {.steps = 40, .jitter = 0, .fixed = Choice{1, 7}})
        .mean_seconds(10, 40);
  };
  EXPECT_GT(seconds(100, 1), 1.1 * seconds(100, 8));
}

// Else a gradient would wait until all of the next sample is decoded.
TEST(Simulate, AWorkerLooksForMoreUrgentWorkWhileItDecodes) {
  auto described = cluster(1);
  described.server = {.cores = 2, .decode = 0.001, .shared = false, .own_cores = 2};
  JobCosts costs = one_cut_job();
  costs.micro_batches = 4;
  const auto seconds = [&](double decode) {
    described.workers[0].rates.decode = decode;
    return simulate(costs, described, {.steps = 30, .jitter = 0, .fixed = Choice{1, 1, 3}})
        .mean_seconds(10, 30);
  };
  const double part = 0.4 / 8;
  EXPECT_LT(seconds(0.4), seconds(0.001) + part + 0.01);
}

TEST(Simulate, EndsWhereThatIsEnough) {
  uint64_t asked = 0;
  const auto enough = [&](const std::vector<SimulatedStep>& steps) {
    EXPECT_EQ(steps.size(), ++asked);
    return asked == 7;
  };
  const auto ended =
      simulate(one_cut_job(), cluster(2), {.steps = 30, .jitter = 0, .enough = enough});
  const auto whole = simulate(one_cut_job(), cluster(2), {.steps = 30, .jitter = 0});
  ASSERT_EQ(ended.steps.size(), 7u);
  EXPECT_EQ(ended.steps.back().seconds, whole.steps[6].seconds);
}

TEST(Simulate, TheSameSeedGivesTheSameSteps) {
  const auto a = simulate(one_cut_job(), cluster(3), {.steps = 30, .seed = 4, .jitter = 0.1});
  const auto b = simulate(one_cut_job(), cluster(3), {.steps = 30, .seed = 4, .jitter = 0.1});
  const auto c = simulate(one_cut_job(), cluster(3), {.steps = 30, .seed = 5, .jitter = 0.1});
  EXPECT_EQ(a.percentile(99, 0), b.percentile(99, 0));
  EXPECT_NE(a.percentile(99, 0), c.percentile(99, 0));
}

TEST(Simulate, ThePlannerMovesTheCutWithinThirtySteps) {
  const auto simulated = simulate(one_cut_job(), cluster(4), {.steps = 60});
  ASSERT_FALSE(simulated.moves.empty());
  EXPECT_LE(simulated.moves.back().step, 30u);
  EXPECT_GT(simulated.steps.back().choice.away, 0u);
  EXPECT_LT(simulated.mean_seconds(40, 60), 0.95 * simulated.mean_seconds(0, 3));
}

TEST(Simulate, ThePlannerMayBelieveInCostsThatAreNotSo) {
  JobCosts slow = one_cut_job();
  slow.cuts[1].stem_forward *= 1.25;
  slow.cuts[1].stem_backward *= 1.25;
  auto described = cluster(2);
  described.server.decode = 0.02;
  for (SimulatedWorker& worker : described.workers)
    worker.rates = {.stem_speed = 0.22, .decode = 0.02, .bytes_per_second = 1e9};
  const auto simulated =
      simulate(slow, described, {.steps = 1050, .jitter = 0.1, .believed = one_cut_job()});
  const auto& moves = simulated.moves;
  ASSERT_GE(moves.size(), 2u) << "to what seems better, and back";
  EXPECT_GT(moves[0].choice.away, 0u);
  EXPECT_EQ(moves[1].choice, Choice{});
  const auto late = std::ranges::count_if(moves, [](const auto& move) { return move.step > 50; });
  EXPECT_LE(late, 2) << "in 1,000 steps";
  const auto believed_right = simulate(slow, described, {.steps = 60, .jitter = 0.1});
  EXPECT_TRUE(believed_right.moves.empty());
}

TEST(Simulate, WhoComesAsAnotherLeavesIsKnownAsWhatItIs) {
  auto described = cluster(2);
  described.workers[0].leaves = 60;
  described.workers[1].joins = 60;
  described.workers[1].rates.stems = false;
  const auto simulated = simulate(one_cut_job(), described, {.steps = 160});
  EXPECT_GT(simulated.steps[59].choice.away, 0u);
  EXPECT_EQ(simulated.steps.back().choice.away, 0u) << "nobody is left who may run stems";
}

TEST(Simulate, ALostWorkerCostsNoStepMoreThanASecond) {
  auto described = cluster(4);
  described.workers[2].leaves = 20;
  const auto simulated = simulate(one_cut_job(), described, {.steps = 40, .fixed = Choice{1, 8}});
  double longest = 0;
  for (const SimulatedStep& step : simulated.steps) longest = std::max(longest, step.seconds);
  EXPECT_LT(longest, simulated.mean_seconds(10, 20) + 1);
  EXPECT_EQ(simulated.steps[19].workers, 4u);
  EXPECT_EQ(simulated.steps[21].workers, 3u);
}

TEST(Simulate, TellsWhatTheDeviceWaitedFor) {
  auto slow = cluster(1);
  slow.server.decode = 10;
  slow.workers[0].rates.decode = 1;
  const auto decoding =
      simulate(one_cut_job(), slow, {.steps = 20, .jitter = 0, .fixed = Choice{}});
  const SimulatedStep& step = decoding.steps.back();
  EXPECT_GT(of(step.stalls, feed::StallCause::kDecode), 0.5 * step.seconds);
  EXPECT_NEAR(feed::total(step.stalls) + step.device, step.seconds, 1e-6);
  slow.workers[0].rates.bytes_per_second = 2e5;
  slow.server.shared = false;
  const auto linked = simulate(one_cut_job(), slow, {.steps = 20, .jitter = 0, .fixed = Choice{}});
  EXPECT_GT(of(linked.steps.back().stalls, feed::StallCause::kLink), 0.3 * step.seconds);
}

TEST(Simulate, WorkersMakeNearlyAllMicroBatchesAndEachOnce) {
  const auto simulated = simulate(one_cut_job(), cluster(2), {.steps = 30, .fixed = Choice{1, 8}});
  uint64_t made = 0;
  for (const uint64_t one : simulated.micro_batches) made += one;
  EXPECT_GE(made, 30u * 8u * 9 / 10);  // the server's own worker helps while the device waits
  EXPECT_LE(made, 30u * 8u + simulated.second_leases);
}

std::string refusal(const SimulatedCluster& described, const Choice& plan) {
  try {
    simulate(one_cut_job(), described, {.fixed = plan});
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Simulate, SaysWhyAPlanCannotBeRunAndWhatCould) {
  EXPECT_THAT(refusal(cluster(1), {7, 4}), HasSubstr("there are Input, layer1"));
  EXPECT_THAT(refusal(cluster(1), {1, 9}),
              HasSubstr("9 stems away and 0 local inputs; a step has 8"));
  EXPECT_THAT(refusal(cluster(1), {1, 4, 5}), HasSubstr("4 stems away and 5 local inputs"));
  EXPECT_THAT(refusal(cluster(0), {1, 4}), HasSubstr("the cluster has no workers"));
  auto late = cluster(2);
  late.workers[0].joins = 30;
  late.workers[1].joins = 20;
  EXPECT_THAT(refusal(late, {1, 4}), HasSubstr("joins at step 20; let one be there"));
  auto decoders = cluster(2);
  for (SimulatedWorker& worker : decoders.workers) worker.rates.stems = false;
  EXPECT_THAT(refusal(decoders, {1, 4}), HasSubstr("all workers have stems: false"));
  EXPECT_THAT(refusal(decoders, {1, 4}), HasSubstr("cut layer1, 4 of 8 stems away"));
}

}  // namespace
}  // namespace outrigger::training
