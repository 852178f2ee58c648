#include "training/planner/desired_workers.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrigger::training {
namespace {

/// A device of its own that eats eight micro-batches in 0.8 s; a worker decodes one in 0.4 s.
JobCosts job() {
  JobCosts costs;
  costs.micro_batches = 8;
  costs.pixels = 1e6;
  costs.cuts.push_back({.head = 0.1, .server_percent = 100});
  return costs;
}
constexpr ServerRates kBusyServer{.cores = 1, .decode = 100, .shared = false};
const std::vector<WorkerRates> kWorkers(2, {.decode = 0.4, .bytes_per_second = 1e9});

TEST(DesiredWorkers, AreTheFewestThatKeepTheDeviceAtWork) {
  EXPECT_EQ(desired_workers(job(), {}, kBusyServer, kWorkers, {}), 4u);
  EXPECT_EQ(desired_workers(job(), {}, kBusyServer, kWorkers, {.target_stall = 0.3}), 3u);
}

TEST(DesiredWorkers, StayWithinTheBounds) {
  EXPECT_EQ(desired_workers(job(), {}, kBusyServer, kWorkers, {.most = 2}), 2u);
  EXPECT_EQ(desired_workers(job(), {}, kBusyServer, kWorkers, {.least = 6}), 6u);
}

TEST(DesiredWorkers, AreNotPaidForWhereTheyBringNothing) {
  ServerRates narrow = kBusyServer;
  narrow.bytes_per_second = 2e6;  // two workers fill the server's card
  EXPECT_LE(desired_workers(job(), {}, narrow, kWorkers, {.most = 1000}), 2u);
  ServerRates quick = kBusyServer;
  quick.decode = 0.05;  // decodes for itself
  EXPECT_EQ(desired_workers(job(), {}, quick, kWorkers, {}), 0u);
}

TEST(DesiredWorkers, AreReckonedWithoutLocalInputWhereTheJobFixesItsPlan) {
  ServerRates quick = kBusyServer;
  quick.decode = 0.05;
  const std::vector<WorkerRates> far(1, {.decode = 0.4, .bytes_per_second = 1e5});
  const ScaleBounds bounds{.least = 1, .most = 8};
  EXPECT_EQ(desired_workers(job(), {}, quick, far, bounds), 1u) << "the server keeps it local";
  EXPECT_GT(desired_workers(job(), {.cut = 0}, quick, far, bounds), 1u)
      << "what workers have taken, it waits for";
}

}  // namespace
}  // namespace outrigger::training
