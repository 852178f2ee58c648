#include "training/planner/model/step_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/random.h"
#include "tests/unit/training/planner/rates.h"

namespace outrigger::training {
namespace {

constexpr Choice kUnsplit{0, 0};

TEST(StepModel, AloneTheServerDecodesAndComputesOneAfterTheOther) {
  const Prediction alone = predict(one_cut_job(), kServer, {}, kUnsplit);
  EXPECT_NEAR(alone.device, 8 * 0.4 / 2, 1e-9);
  EXPECT_NEAR(alone.seconds, 8 * 0.4 / 2 + 8 * 0.1, 1e-6);
  EXPECT_EQ(alone.bound, Bound::kDecode) << "without it a third less";
  ServerRates quick = kServer;
  quick.decode = 0.01;
  EXPECT_EQ(predict(one_cut_job(), quick, {}, kUnsplit).bound, Bound::kDevice) << "a twentieth";
}

TEST(StepModel, WhatIsAllLocalIsNotBoundByLinks) {
  const std::vector<WorkerRates> one{kWorker};
  ServerRates server = kServer;
  server.bytes_per_second = 1000;
  const Choice all_local{.local = 8};
  EXPECT_EQ(predict(one_cut_job(), server, one, all_local).bound, Bound::kDecode);
  server.decode = 0.01;
  EXPECT_EQ(predict(one_cut_job(), server, one, all_local).bound, Bound::kDevice);
  server.shared = false;
  server.decode = 1;
  EXPECT_EQ(predict(one_cut_job(), server, one, all_local).bound, Bound::kDecode);
}

TEST(StepModel, AllElseLocalBesideStemsIsBoundByDecodingNotByLinks) {
  const std::vector<WorkerRates> one{kWorker};
  JobCosts costs = one_cut_job();
  costs.pixels = 1e12;  // no link brings a micro-batch of them
  const ServerRates server{.cores = 10, .decode = 1, .shared = false};
  const Prediction half = predict(costs, server, one, {1, 4, 4});
  EXPECT_NEAR(half.seconds, 4, 0.01) << "four are decoded one after the other";
  EXPECT_EQ(half.bound, Bound::kDecode);
}

TEST(StepModel, LinksTakeOfTheCoresAtBothEnds) {
  WorkerRates quick = kWorker;
  quick.decode = 1e-4;
  const std::vector<WorkerRates> workers(8, quick);
  const JobCosts costs = one_cut_job_with_link_work();
  const double activations = 2 * 2e-3 + 4e6 * 4e-10 + 4e6 * 4e-10;
  const double gradients = 2 * 2e-3 + (4e6 + 1e5) * 4e-10 + 4e6 * 4e-10;
  const ServerRates server{.cores = 2, .decode = 10};
  EXPECT_NEAR(predict(costs, server, workers, {1, 8}).device,
              8 * (0.3 + activations + gradients) / 2, 1e-6)
      << "its cores are the device's";
  const double pixels = 2 * 2e-3 + 1e6 * 4e-10;
  EXPECT_NEAR(predict(costs, server, workers, {}).seconds, 8 * (0.4 + pixels) / 2, 1e-3);

  const std::vector<WorkerRates> one{{.stem_speed = 0.5, .decode = 0.5}};
  EXPECT_NEAR(predict(costs, {.cores = 1000, .decode = 1e3, .shared = false}, one, {}).seconds,
              8 * (0.5 + pixels / 0.5), 0.02)
      << "a worker decodes less";
  JobCosts free = costs;
  free.link_work = {};
  const ServerRates device{.cores = 1000, .decode = 1e3, .shared = false, .own_cores = 100};
  EXPECT_NEAR(
      predict(costs, device, one, {1, 8}).seconds - predict(free, device, one, {1, 8}).seconds,
      8 * (activations + gradients) / 0.5, 0.03)
      << "and has less for stems";
}

TEST(StepModel, ADeviceOfAnotherKindTakesItsOwnTimeForStems) {
  JobCosts costs = one_cut_job(false);
  costs.cuts[0].head = 0.05;
  costs.cuts[1].head = 0.03;
  costs.cuts[1].device_stem = 0.01;
  const ServerRates device{.cores = 1, .decode = 1e-6, .shared = false};
  EXPECT_NEAR(predict(costs, device, {}, {1, 0}).device, 8 * (0.03 + 0.01), 1e-9);
  const std::vector<WorkerRates> one{kWorker};
  EXPECT_NEAR(predict(costs, device, one, {1, 8}).device, 8 * 0.03, 1e-9);
}

TEST(StepModel, AWorkerTakesDecodingOffUntilTheDeviceIsTheBound) {
  const std::vector<WorkerRates> one{kWorker};
  const Prediction with = predict(one_cut_job(), kServer, one, kUnsplit);
  EXPECT_NEAR(with.seconds, 8 * 0.4 / 2, 1e-6);
  EXPECT_EQ(with.bound, Bound::kDevice);
}

TEST(StepModel, AnOwnWorkerHelpsWhereItHasCoresOfItsOwnAndStemsDoNotRunAhead) {
  WorkerRates slow = kWorker;
  slow.stem_speed = 0.1;
  const std::vector<WorkerRates> one{slow};
  ServerRates server{.cores = 10, .decode = 0.001, .shared = false, .own_cores = 8};
  JobCosts costs = one_cut_job();
  costs.cuts[1].device_stem = 0.1;
  const auto seconds = [&] { return predict(costs, server, one, {1, 8}).seconds; };
  const double with = seconds();
  server.own_cores = 0.01;
  EXPECT_LT(with, 0.6 * seconds()) << "it takes four of the eight";
  server.own_cores = 8;
  costs.staleness = 1;
  const double ahead = seconds();
  server.own_cores = 0.01;
  EXPECT_EQ(seconds(), ahead);
}

TEST(StepModel, AWorkerOnANarrowLinkTakesNoWeightsWhereItTakesNoStem) {
  JobCosts costs = one_cut_job();
  costs.cuts[1].weights = 3e6;
  std::vector<WorkerRates> workers(4, kWorker);
  const double without = predict(costs, kServer, workers, {1, 6}).seconds;
  workers.push_back(kWorker);
  workers.back().bytes_per_second = 6e5;  // the weights alone take five seconds
  EXPECT_NEAR(predict(costs, kServer, workers, {1, 6}).seconds, without, 0.05 * without);
}

TEST(StepModel, StemsThatNobodyEverEndsTakeForEver) {
  const std::vector<WorkerRates> stopped{{.stem_speed = 0, .decode = 0.05, .stems = true}};
  EXPECT_FALSE(std::isfinite(predict(one_cut_job(), kServer, stopped, {1, 6}).seconds));
}

TEST(StepModel, ALinkCarriesBothWaysAtOnce) {
  WorkerRates narrow = kWorker;
  narrow.bytes_per_second = 4e6;  // activations take a second, and so do gradients
  const std::vector<WorkerRates> one{narrow};
  JobCosts costs = one_cut_job();
  costs.staleness = 1;
  const ServerRates server{.cores = 100, .decode = 0.001, .shared = false};
  EXPECT_NEAR(predict(costs, server, one, {1, 8}).seconds, 8, 1) << "not sixteen";
}

TEST(StepModel, PixelsOverASlowLinkAreWorthNoMoreThanTheLink) {
  WorkerRates slow = kWorker;
  slow.bytes_per_second = 1e6;  // one micro-batch a second
  const std::vector<WorkerRates> one{slow};
  // The worker holds leases for four of each step's.
  EXPECT_NEAR(predict(one_cut_job(), kServer, one, kUnsplit).seconds, 4, 1e-5);
  // With six local the link brings two, and decoding them takes the device's cores 0.6 s.
  EXPECT_NEAR(predict(one_cut_job(), kServer, one, {0, 0, 6}).seconds, 2.2, 1e-5);
  EXPECT_EQ(best_local_input(one_cut_job(), kServer, one, kUnsplit).local, 6u);
}

TEST(StepModel, WhereLinksAreNarrowTheServerBestMakesItsInputItself) {
  WorkerRates slow = kWorker;
  slow.bytes_per_second = 1e6;  // a micro-batch a second
  const std::vector<WorkerRates> many(8, slow);
  ServerRates own = kServer;
  own.shared = false;
  EXPECT_NEAR(predict(one_cut_job(), own, many, kUnsplit).seconds, 8 * 0.4 / 2, 1e-6)
      << "eight links bring eight a second";
  const std::vector<WorkerRates> few(4, slow);
  EXPECT_NEAR(predict(one_cut_job(), own, few, kUnsplit).seconds, 2, 1e-6);
  const LocalInput best = best_local_input(one_cut_job(), own, few, kUnsplit);
  EXPECT_EQ(best.local, 2u) << "the workers bring six in a step of 1.6 s";
  EXPECT_NEAR(best.prediction.seconds, 8 * 0.4 / 2, 1e-6);
}

TEST(StepModel, WhereLinksAreWideNothingNeedBeLocal) {
  const std::vector<WorkerRates> many(8, kWorker);
  EXPECT_EQ(best_local_input(one_cut_job(), kServer, many, kUnsplit).local, 0u);
  EXPECT_EQ(best_local_input(one_cut_job(), kServer, {}, kUnsplit).local, 0u)
      << "without workers it makes all anyway";
}

TEST(StepModel, TheBestLocalInputIsTheBestOfAll) {
  RandomStream random(2, RandomUse::kBackOff, 1);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random.uniform());
  };
  for (int i = 0; i < 500; ++i) {
    const JobCosts costs = one_cut_job(random.uniform() < 0.5f);
    ServerRates server = kServer;
    server.shared = random.uniform() < 0.5f;
    const std::vector<WorkerRates> workers(
        static_cast<size_t>(between(1, 9)),
        {.stem_speed = 1, .decode = between(0.01, 0.5), .bytes_per_second = between(5e5, 1e8)});
    Choice choice{1, static_cast<uint32_t>(between(1, 8.99))};
    const double best = best_local_input(costs, server, workers, choice).prediction.seconds;
    double least = best;
    for (choice.local = 0; choice.local + choice.away <= 8; ++choice.local)
      least = std::min(least, predict(costs, server, workers, choice).seconds);
    EXPECT_LE(best, 1.006 * least);
  }
}

TEST(StepModel, ATrainedStemAtStalenessZeroHasAFloorThatNoWorkersLower) {
  const std::vector<WorkerRates> many(64, kWorker);
  const double seconds = predict(one_cut_job(), kServer, many, {1, 8}).seconds;
  // Weights out, one stem, the wire, all heads, the wire, one backward and its gradients.
  const double floor = 0.04 + 0.004 + 8 * 0.3 / 2 + 0.004 + 0.06;
  EXPECT_GT(seconds, floor);
  EXPECT_LT(seconds, floor + 0.02);
}

TEST(StepModel, WhatComesLastHidesTheWayBack) {
  std::vector<WorkerRates> many(64, kWorker);
  for (WorkerRates& one : many) one.bytes_per_second = 1e8;  // 40 ms each way, of 200 for one here
  const Prediction hidden = predict(one_cut_job(), kServer, many, {1, 6});
  EXPECT_NEAR(hidden.seconds, hidden.device, 1e-9);
  // A device of another kind takes them in a row, so the last gradients come after all else.
  JobCosts costs = one_cut_job();
  costs.cuts[1].device_stem = 0.1;
  const Prediction seen = predict(costs, kServer, many, {1, 6});
  EXPECT_NEAR(seen.device, hidden.device, 1e-9);
  EXPECT_GT(seen.seconds, seen.device + 0.04 + 0.06);
}

TEST(StepModel, AFrozenStemRunsAheadAndHasNone) {
  const std::vector<WorkerRates> many(64, kWorker);
  EXPECT_NEAR(predict(one_cut_job(false), kServer, many, {1, 8}).seconds, 8 * 0.3 / 2, 1e-6);
}

TEST(StepModel, StalenessHidesTheWayThere) {
  const std::vector<WorkerRates> two(2, kWorker);
  JobCosts stale = one_cut_job();
  stale.staleness = 1;
  EXPECT_LT(predict(stale, kServer, two, {1, 8}).seconds,
            predict(one_cut_job(), kServer, two, {1, 8}).seconds);
}

TEST(StepModel, WhoMayRunNoStemsRunsNone) {
  WorkerRates pixels_only = kWorker;
  pixels_only.stems = false;
  const std::vector<WorkerRates> none{pixels_only};
  EXPECT_TRUE(std::isinf(predict(one_cut_job(), kServer, none, {1, 4}).seconds));
  const std::vector<WorkerRates> one{pixels_only, kWorker};
  EXPECT_TRUE(std::isfinite(predict(one_cut_job(), kServer, one, {1, 4}).seconds));
}

TEST(StepModel, NeverPromisesMoreThanAnyPartCanDo) {
  RandomStream random(1, RandomUse::kBackOff, 1);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random.uniform());
  };
  for (int i = 0; i < 2000; ++i) {
    const JobCosts costs = one_cut_job(random.uniform() < 0.5f);
    std::vector<WorkerRates> workers(static_cast<size_t>(between(0, 6)));
    for (WorkerRates& one : workers) {
      one = {.stem_speed = between(0.1, 4),
             .decode = between(0.01, 0.5),
             .bytes_per_second = std::pow(10, between(6, 10)),
             .latency = between(0, 0.01)};
    }
    const uint32_t away = workers.empty() ? 0 : static_cast<uint32_t>(between(0, 8.99));
    const Choice choice{away == 0 ? 0u : 1u, away};
    const Prediction step = predict(costs, kServer, workers, choice);
    EXPECT_GE(step.seconds, step.device - 1e-9);
    double decoded = (step.seconds - step.device) / kServer.decode;
    double stems = 0;
    for (const WorkerRates& one : workers) {
      decoded += step.seconds / one.decode;
      stems += step.seconds * one.stem_speed;
    }
    EXPECT_GE(decoded, 8 - 1e-6);
    const CutCosts& cut = costs.cuts[choice.cut];
    EXPECT_GE(stems, away * (cut.stem_forward + cut.stem_backward) - 1e-6);
  }
}

}  // namespace
}  // namespace outrigger::training
