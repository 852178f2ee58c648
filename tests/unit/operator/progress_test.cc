#include <gmock/gmock.h>

#include "operator/read_report.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;

constexpr const char* kPage = R"({"role": "server", "job": "faces", "state": "Training",
  "progress": {"epoch": 2, "step": 120, "totalSteps": 300, "percent": 40.2, "samplesPerSecond": 512.7,
               "remainingSeconds": 60.2, "loss": 0.12345, "accuracy": 0.91},
  "split": {"plan": 3, "cut": "relu1", "sharePercent": 75, "localInputPercent": 40,
            "serverPercent": 62.7, "stallPercent": 31.5, "stallCause": "Decode"},
  "evaluation": {"accuracy": 0.88, "loss": 0.4}, "checkpoint": {"step": 100}})";

TEST(Progress, APageIsReadWithItsNumbersAsTheStatusHasThem) {
  const auto report = read_report(kPage);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->progress.step, 120);
  EXPECT_EQ(report->progress.percent, 40);
  EXPECT_EQ(report->progress.total_steps, 300);
  EXPECT_EQ(report->progress.samples_per_second, 512);
  std::vector<std::string> metrics;
  for (const auto& metric : report->progress.metrics)
    metrics.push_back(metric.name + "=" + metric.value);
  EXPECT_THAT(metrics, ElementsAre("loss=0.1235", "accuracy=0.91", "validationAccuracy=0.88"));
  EXPECT_EQ(report->split->local_input_percent, 40);
  EXPECT_EQ(report->split->server_percent, 62);
  EXPECT_EQ(report->split->stall_cause, api::StallCause::kDecode);
  EXPECT_EQ(report->checkpoint_step, 100);
}

TEST(Progress, WorkersThatTheServerCanUseAreRead) {
  const auto desired = [](const std::string& workers) {
    return read_report(R"({"progress": {"step": 1}, "workers": )" + workers + "}")->desired_workers;
  };
  EXPECT_EQ(desired(R"({"joined": 2, "desired": 7})"), 7);
  EXPECT_EQ(desired(R"({"desired": 1e300})"), 1'000'000);
  EXPECT_EQ(desired(R"({"joined": 0})"), std::nullopt);
  EXPECT_EQ(desired(R"({"desired": "many"})"), std::nullopt);
  EXPECT_EQ(desired("7"), std::nullopt);
}

TEST(Progress, NonsenseIsNoReport) {
  for (const char* page : {"", "x", "[]", "{}", R"({"progress": 3})", R"({"progress": {}})",
                           R"({"progress": {"step": "many"}})"})
    EXPECT_FALSE(read_report(page)) << page;
}

TEST(Progress, NumbersBeyondTheSchemaAreCutToIt) {
  const auto report = read_report(
      R"({"progress": {"step": 1e300, "percent": 4000, "epoch": -3}, "split": {"stallPercent": 999, "cut": 3}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->progress.percent, 100);
  EXPECT_EQ(report->progress.epoch, 0);
  EXPECT_EQ(report->split->stall_percent, 100);
}

TEST(Progress, ACauseThatTheSchemaDoesNotKnowIsToldInWords) {
  const auto report =
      read_report(R"({"progress": {"step": 1}, "split": {"stallCause": "Gremlins"}})");
  EXPECT_EQ(report->split->stall_cause, api::StallCause::kNone);
  EXPECT_EQ(report->split->reason, "the device waits for: Gremlins");
}

TEST(Progress, WhatAServerReportsIsInTheStatusWithWhereItsFilesLie) {
  World world = running();
  world.report = read_report(kPage);
  world.settle();
  EXPECT_EQ(world.status().progress->percent, 40);
  EXPECT_EQ(world.status().progress->updated_time, world.now);
  EXPECT_EQ(world.status().split->cut, "relu1");
  EXPECT_EQ(world.status().checkpoint->path, "/runs/faces/step-100");
  EXPECT_EQ(world.status().output->path, "/runs/faces");
  EXPECT_EQ(world.condition("InputStarved"), "True/DeviceWaits");
}

TEST(Progress, WhatAServerToldAtItsEndIsLaterThanItsPage) {
  World world = running();
  world.report = read_report(kPage);
  world.settle();
  world.spec().suspend = true;
  world.settle();
  world.end(
      "faces-server-0-0",
      {20, "", R"({"exitCode": 20, "message": "stopped", "progress": {"step": 150, "percent": 50,
                        "evaluation": {"accuracy": 0.9, "identification": 0.97},
                        "checkpoint": {"step": 150}}})"});
  world.settle();
  const api::TrainingJobStatus told = world.status();
  EXPECT_EQ(told.progress->step, 150);
  EXPECT_EQ(told.progress->metrics.back().name, "identification");
  EXPECT_EQ(told.checkpoint->path, "/runs/faces/step-150");
  world.advance(seconds(100));
  EXPECT_EQ(world.look().status, told) << "and it is written once";
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "True/Suspended");
  EXPECT_EQ(world.status().progress->step, 150) << "though the page is still remembered";
  EXPECT_EQ(world.status().checkpoint->path, "/runs/faces/step-150");
}

const api::CheckpointStatus* checkpoint_after_a_restart(World& world, const std::string& failed) {
  world.report = read_report(kPage);
  world.settle();
  world.end(failed, {22});
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 2);
  const auto& checkpoint = world.status().checkpoint;
  return checkpoint ? &*checkpoint : nullptr;
}

TEST(Progress, ACheckpointThatWentWithItsServersPodIsForgotten) {
  World alone = running();
  EXPECT_EQ(checkpoint_after_a_restart(alone, "faces-server-0-0"), nullptr);
  World with_another = running("  server: {replicas: 2}\n");
  EXPECT_EQ(checkpoint_after_a_restart(with_another, "faces-server-1-0"), nullptr)
      << "though the first server of the former attempt is still there and tells of it";
}

TEST(Progress, ACheckpointOnAClaimIsKeptOverARestart) {
  World world = running("  checkpoint: {path: /kept, volumeClaimName: kept}\n");
  ASSERT_NE(checkpoint_after_a_restart(world, "faces-server-0-0"), nullptr);
  EXPECT_EQ(world.status().checkpoint->path, "/kept/faces/step-100");
}

TEST(Progress, StepsAloneAreWrittenNoMoreThanTwiceAMinute) {
  World world = running();
  world.report = read_report(kPage);
  world.settle();
  const auto written = world.status();
  world.advance(seconds(10));
  ++world.report->progress.step;
  EXPECT_EQ(world.look().status, written);
  world.advance(seconds(20));
  EXPECT_EQ(world.look().status.progress->step, 121);
  world.advance(seconds(-20));
  ++world.report->progress.percent;
  EXPECT_EQ(world.look().status.progress->percent, 41);
}

TEST(Progress, StarvationIsSetAtOneBoundAndClearedAtAnother) {
  World world = running();
  world.report = read_report(kPage);
  const auto at = [&](int percent) {
    world.report->split->stall_percent = percent;
    ++world.report->progress.percent;
    world.settle();
    return world.condition("InputStarved");
  };
  EXPECT_EQ(at(15), "");
  EXPECT_EQ(at(20), "True/DeviceWaits");
  EXPECT_EQ(at(12), "True/DeviceWaits");
  EXPECT_EQ(at(9), "False/DeviceIsFed");
  EXPECT_EQ(at(19), "False/DeviceIsFed");
}

TEST(Progress, AServerThatDoesNotAnswerIsNotTakenForHung) {
  World world = running();
  world.advance(seconds(1'000'000));
  world.settle();
  EXPECT_EQ(world.status().state, "Running");
}

}  // namespace
}  // namespace outrigger::controller
