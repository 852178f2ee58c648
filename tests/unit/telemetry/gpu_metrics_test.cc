#include "telemetry/gpu_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace outrigger::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kBusId = "0000:65:00.0";

TEST(Nvml, ReadsWhatTheDriverKnowsAndLeavesOutTheRest) {
  std::string why;
  const auto nvml = Nvml::load(why, OUTRIGGER_FAKE_NVML);
  ASSERT_NE(nvml, nullptr) << why;
  const auto usage = nvml->usage(kBusId);
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->busy_share, 0.73);
  EXPECT_EQ(usage->memory_used_bytes, 600);
  EXPECT_EQ(usage->memory_total_bytes, 1000);
  EXPECT_EQ(usage->power_watts, 512.5);
  EXPECT_EQ(usage->temperature_celsius, std::nullopt);
  EXPECT_EQ(usage->uncorrected_errors, 2);
  EXPECT_EQ(nvml->usage("0000:01:00.0"), std::nullopt);
}

TEST(Nvml, SaysWhyItIsNotThere) {
  std::string why;
  EXPECT_EQ(Nvml::load(why, "libno-such-driver.so.1"), nullptr);
  EXPECT_THAT(why, HasSubstr("libno-such-driver.so.1"));
  EXPECT_EQ(Nvml::load(why, "libm.so.6"), nullptr);
  EXPECT_THAT(why, HasSubstr("libm.so.6 has not what NVML has"));
}

TEST(GpuMetrics, AreThereFromTheStartAndOnlyThoseThatAreKnown) {
  std::string why;
  Metrics metrics;
  const GpuMetrics gpu(metrics, Nvml::load(why, OUTRIGGER_FAKE_NVML), kBusId,
                       std::chrono::hours(1));
  const std::string text = metrics.exposition();
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_utilization_ratio 0.73"));
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_memory_used_bytes 600"));
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_power_watts 512.5"));
  EXPECT_THAT(text, HasSubstr("outrigger_gpu_uncorrected_memory_errors 2"));
  EXPECT_THAT(text, Not(HasSubstr("outrigger_gpu_temperature_celsius")));
}

/// A driver that finds its GPU once.
class LosingNvml final : public Nvml {
 public:
  explicit LosingNvml(std::atomic<int>& asked) : asked_(asked) {}
  std::optional<GpuUsage> usage(const std::string&) override {
    const bool first = asked_++ == 0;
    asked_.notify_all();
    return first ? std::optional(GpuUsage{.power_watts = 300}) : std::nullopt;
  }

 private:
  std::atomic<int>& asked_;
};

TEST(GpuMetrics, OfAGpuThatIsGoneAreGoneToo) {
  std::atomic<int> asked{0};
  Metrics metrics;
  const GpuMetrics gpu(metrics, std::make_unique<LosingNvml>(asked), kBusId,
                       std::chrono::milliseconds(1));
  // At the third question the answer to the second is on the page.
  for (int seen = asked; seen < 3; seen = asked) asked.wait(seen);
  EXPECT_THAT(metrics.exposition(), Not(HasSubstr("outrigger_gpu_power_watts")));
}

TEST(GpuMetrics, EndAtOnceHoweverRarelyTheyRead) {
  std::string why;
  Metrics metrics;
  const auto begin = std::chrono::steady_clock::now();
  {
    const GpuMetrics gpu(metrics, Nvml::load(why, OUTRIGGER_FAKE_NVML), kBusId,
                         std::chrono::hours(1));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
}  // namespace outrigger::telemetry
