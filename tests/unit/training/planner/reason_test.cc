#include "training/planner/reason.h"

#include <gtest/gtest.h>

#include "tests/unit/training/planner/rates.h"

namespace outrigger::training {
namespace {

std::vector<RankRates> ranks(size_t workers, size_t count = 2) {
  WorkerRates worker = kWorker;
  worker.bytes_per_second = 1e8;
  return std::vector<RankRates>(count, {kServer, std::vector<WorkerRates>(workers, worker)});
}

TEST(DescribeGain, SaysWhatAMoveSavesAndWhatIsEnough) {
  EXPECT_EQ(describe_gain({.is = 0.0816, .wanted = 0.03}),
            "; that saves 8.2 % where 3.0 % is enough");
  EXPECT_EQ(describe_gain({.is = 0.25, .wanted = 0}), "; that saves 25.0 %");
  EXPECT_EQ(describe_gain({.is = -0.01, .wanted = -0.05}), "");
}

TEST(WhatChanged, AreWorkersFirst) {
  const auto before = ranks(2);
  auto now = before;
  now[1].workers.push_back(kWorker);
  now[0].workers[0].decode *= 3;
  EXPECT_EQ(what_changed(before, now), "1 worker came");
  EXPECT_EQ(what_changed(now, ranks(1)), "3 workers left");
}

TEST(WhatChanged, IsTheRateThatChangedTheMost) {
  const auto before = ranks(2);
  auto now = before;
  now[0].server.cores /= 2;
  EXPECT_EQ(what_changed(before, now), "a device works at 0.5 times its speed");
  EXPECT_EQ(what_changed(now, before), "a device works at 2 times its speed");
  now[1].workers[1].bytes_per_second /= 4;
  EXPECT_EQ(what_changed(before, now), "a link works at 0.25 times its speed");
  now[1].workers[0].decode *= 5;
  EXPECT_EQ(what_changed(before, now), "a worker decodes at 0.2 times its speed");
}

TEST(WhatChanged, IsNoLinkOnWhichWorkTakesNextToNothing) {
  const auto before = ranks(2);
  auto now = before;
  now[1].workers[1].bytes_per_second /= 4;
  const double bytes = kWorker.decode * before[1].workers[1].bytes_per_second;
  EXPECT_EQ(what_changed(before, now, {.bytes = bytes / 100}), "");
  EXPECT_EQ(what_changed(before, now, {.bytes = bytes / 2}),
            "a link works at 0.25 times its speed");
}

TEST(WhatChanged, IsNothingWhereAWorkerWasReplacedByItsLike) {
  auto before = ranks(2, 1);
  before[0].workers[1].stem_speed /= 4;
  auto now = before;
  std::swap(now[0].workers[0], now[0].workers[1]);
  EXPECT_EQ(what_changed(before, now), "");
}

TEST(WhatChanged, IsNothingWhereRatesWaverOrWereNotKnown) {
  const auto before = ranks(2);
  auto now = before;
  now[0].workers[0].stem_speed *= 1.2;
  EXPECT_EQ(what_changed(before, now), "");
  auto unknown = before;
  unknown[0].workers[0].stem_speed = 0;
  unknown[1].workers[1].bytes_per_second = kUnknownLink;
  EXPECT_EQ(what_changed(unknown, now), "");
  EXPECT_EQ(what_changed({}, now), "");
}

}  // namespace
}  // namespace outrigger::training
