#include "gpu-server/device/gpu_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

using ::testing::HasSubstr;

training::StepReport step_of(std::chrono::milliseconds took, const nn::ResidentTimes& times) {
  training::StepReport report;
  report.took = took;
  report.device = times;
  return report;
}

TEST(GpuPhases, CountWhatTheDeviceDidAndWhenItStoodStill) {
  telemetry::Metrics metrics;
  GpuPhases phases(
      metrics,
      [] {
        return std::vector<nn::cuda::MemoryUse>{{"the weights", 400}, {"the gradients", 100}};
      },
      [] {
        std::vector<nn::cuda::MemoryUse> layers;
        for (int i = 0; i < 12; ++i)
          layers.push_back({"layer" + std::to_string(i), int64_t{120} - 10 * i});
        return layers;
      });
  phases.step(step_of(std::chrono::milliseconds(100), {0.01, 0.02, 0.04, 0.01}));
  phases.step(step_of(std::chrono::milliseconds(100), {0.01, 0.02, 0.04, 0.01}));
  phases.step({});  // a host's, which tells nothing
  const std::string text = metrics.exposition();
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_phase_seconds_total{phase=\"backward\"} 0.08"));
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_phase_seconds_total{phase=\"input\"} 0.02"));
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_taken_bytes{for=\"the weights\"} 400"));
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_kept_bytes{layer=\"layer0\"} 120"));
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_kept_bytes{layer=\"layer9\"} 30"));
  EXPECT_THAT(text, Not(HasSubstr("layer10")));
  EXPECT_NEAR(metrics
                  .counter({"outrigger_gpu_phase_seconds_total",
                            "Time of the device in steps, by what it did.",
                            {"phase"}},
                           {{"phase", "idle"}})
                  .value(),
              0.04, 1e-9);
}

TEST(StallsOfADevice, AreNoLongerThanItStoodStill) {
  feed::StallTimes stalls{};
  feed::of(stalls, feed::StallCause::kDecode) = 0.3;
  feed::of(stalls, feed::StallCause::kLink) = 0.1;
  EXPECT_EQ(hold_to(stalls, 0.5), stalls);
  const feed::StallTimes held = hold_to(stalls, 0.2);
  EXPECT_NEAR(feed::of(held, feed::StallCause::kDecode), 0.15, 1e-12);
  EXPECT_NEAR(feed::of(held, feed::StallCause::kLink), 0.05, 1e-12);
  EXPECT_EQ(feed::total(hold_to({}, 0.2)), 0);
  EXPECT_EQ(feed::total(hold_to(stalls, 0)), 0);
}

TEST(StallsOfADevice, AreTheStepLessItsWork) {
  EXPECT_NEAR(stood_still(step_of(std::chrono::milliseconds(100), {0.01, 0.02, 0.04, 0.01})), 0.03,
              1e-12);
  EXPECT_EQ(stood_still(step_of(std::chrono::milliseconds(10), {0.01, 0.02, 0.04, 0.01})), 0);
  EXPECT_EQ(stood_still({}), 0);
}

TEST(WaitsOfTheTrainer, AreHeldToThoseOfItsDevice) {
  auto report = step_of(std::chrono::milliseconds(100), {0, 0.03, 0.06, 0.005});
  report.waited_for_input = std::chrono::milliseconds(30);
  report.waited_for_gradients = std::chrono::milliseconds(10);
  const auto held = as_the_device_waited(report);
  EXPECT_NEAR(std::chrono::duration<double>(held.waited_for_input).count(), 0.00375, 1e-8);
  EXPECT_NEAR(std::chrono::duration<double>(held.waited_for_gradients).count(), 0.00125, 1e-8);
  report.waited_for_ranks = std::chrono::milliseconds(50);
  EXPECT_EQ(as_the_device_waited(report).waited_for_ranks.count(), 0) << "no time is left for it";
  report.waited_for_input = std::chrono::milliseconds(0);
  report.waited_for_gradients = std::chrono::milliseconds(1);
  EXPECT_NEAR(to_seconds(as_the_device_waited(report).waited_for_ranks), 0.004, 1e-8);
  report.device.reset();
  EXPECT_EQ(as_the_device_waited(report).waited_for_input, report.waited_for_input);
}

}  // namespace
}  // namespace outrigger::gpu_server
