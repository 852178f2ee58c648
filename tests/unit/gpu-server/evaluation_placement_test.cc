#include "gpu-server/planning/evaluation_placement.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

using api::EvaluationPlace::kAuto;

TEST(EvaluationPlacement, IsWhereTheJobSays) {
  EvaluationPlacement server(api::EvaluationPlace::kServer, false);
  server.server_took(100);
  EXPECT_FALSE(server.on_workers(4));
  const EvaluationPlacement workers(api::EvaluationPlace::kWorkers, false);
  EXPECT_TRUE(workers.on_workers(4));
  EXPECT_FALSE(workers.on_workers(0)) << "nobody is there";
  EXPECT_FALSE(workers.server_instead(0)) << "it was asked for";
}

TEST(EvaluationPlacement, AutoMeasuresBothAndTakesTheCheaper) {
  EvaluationPlacement place(kAuto, false);
  EXPECT_FALSE(place.on_workers(4)) << "first the server";
  place.server_took(2);
  EXPECT_TRUE(place.on_workers(4)) << "then the workers";
  place.workers_took(3, 4);
  EXPECT_FALSE(place.on_workers(4));
  place.server_took(6);
  EXPECT_TRUE(place.on_workers(4)) << "4 s by the mean of the server's";
}

TEST(EvaluationPlacement, WorkersGetAnotherChanceWhenTheirNumberChanges) {
  EvaluationPlacement place(kAuto, false);
  place.server_took(2);
  place.workers_took(3, 8);
  EXPECT_FALSE(place.on_workers(8));
  EXPECT_FALSE(place.on_workers(9));
  EXPECT_TRUE(place.on_workers(10));
  EXPECT_TRUE(place.on_workers(6));
  place.workers_took(1, 10);
  EXPECT_TRUE(place.on_workers(10)) << "what another number took does not count";
}

TEST(EvaluationPlacement, StaysOnTheServerWhereResultsMayEndTheRun) {
  EvaluationPlacement place(kAuto, true);
  place.server_took(100);
  EXPECT_FALSE(place.on_workers(4));
}

TEST(EvaluationPlacement, TheServerTakesOverWhatWorkersDoNotGetOnWith) {
  const EvaluationPlacement place(kAuto, false);
  EXPECT_TRUE(place.server_instead(0.2));
  EXPECT_FALSE(place.server_instead(0.9));
}

TEST(EvaluationLoss, IsWhatStepsTakeMoreThanUsual) {
  EvaluationLoss loss;
  for (int i = 0; i < 50; ++i) loss.step(1, false);
  for (int i = 0; i < 4; ++i) loss.step(1.25, true);
  loss.waited(2);
  EXPECT_NEAR(loss.take(), 3, 1e-9);
  EXPECT_EQ(loss.take(), 0) << "taken once";
  loss.step(0.5, true);
  EXPECT_EQ(loss.take(), 0) << "faster steps are no gain";
}

TEST(EvaluationLoss, CountsNothingBeforeAUsualStepIsKnown) {
  EvaluationLoss loss;
  loss.step(5, true);
  EXPECT_EQ(loss.take(), 0);
}

}  // namespace
}  // namespace outrigger::gpu_server
