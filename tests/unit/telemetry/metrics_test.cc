#include "telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/file.h"

namespace outrigger::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

const MetricInfo kSteps{"outrigger_steps_total", "Optimizer steps done.", {}};
const MetricInfo kStall{
    "outrigger_stall_seconds_total", "Time the device waited, by cause.", {"cause"}};
const MetricInfo kWorkers{"outrigger_workers", "Workers joined now.", {}};
const HistogramInfo kStepTime{{"outrigger_step_seconds", "Time of a step.", {}}, {0.1, 1}};

TEST(Metrics, AreWrittenInPrometheusTextFormat) {
  Metrics metrics;
  metrics.counter(kSteps).add(3);
  metrics.counter(kStall, {{"cause", "decode"}}).add(0.5);
  metrics.gauge(kWorkers).set(2);
  metrics.histogram(kStepTime).observe(0.5);
  const std::string text = metrics.exposition();
  EXPECT_THAT(text, HasSubstr("# HELP outrigger_steps_total Optimizer steps done.\n"
                              "# TYPE outrigger_steps_total counter\n"
                              "outrigger_steps_total 3\n"));
  EXPECT_THAT(text, HasSubstr("outrigger_stall_seconds_total{cause=\"decode\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("outrigger_workers 2\n"));
  EXPECT_THAT(text, HasSubstr("outrigger_step_seconds_bucket{le=\"0.1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("outrigger_step_seconds_bucket{le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("outrigger_step_seconds_bucket{le=\"+Inf\"} 1\n"));
}

TEST(Metrics, TheSameMetricAndLabelsAreTheSameObject) {
  Metrics metrics;
  EXPECT_EQ(&metrics.counter(kStall, {{"cause", "decode"}}),
            &metrics.counter(kStall, {{"cause", "decode"}}));
  EXPECT_NE(&metrics.counter(kStall, {{"cause", "decode"}}),
            &metrics.counter(kStall, {{"cause", "wire"}}));
  metrics.gauge(kWorkers).set(4);
  metrics.gauge(kWorkers).add(-1);
  EXPECT_EQ(metrics.gauge(kWorkers).value(), 3);
}

TEST(Metrics, LabelValuesAreEscaped) {
  Metrics metrics;
  metrics.counter(kStall, {{"cause", "a\"b\\c\nd"}}).add(1);
  EXPECT_THAT(metrics.exposition(), HasSubstr(R"({cause="a\"b\\c\nd"} 1)"));
}

TEST(Metrics, WhatIsManyIsAskedForWithEachPage) {
  Metrics metrics;
  std::vector<Sample> samples;
  metrics.gauge_of({"jobs_done_ratio", "How much is done.", {"job"}}, [&] { return samples; });
  EXPECT_THAT(metrics.exposition(), Not(HasSubstr("jobs_done_ratio")));
  samples = {{{{"job", "a"}}, 0.5}, {{{"job", "b \"c\""}}, 1}};
  EXPECT_THAT(metrics.exposition(), HasSubstr("# HELP jobs_done_ratio How much is done.\n"
                                              "# TYPE jobs_done_ratio gauge\n"
                                              "jobs_done_ratio{job=\"a\"} 0.5\n"
                                              "jobs_done_ratio{job=\"b \\\"c\\\"\"} 1\n"));
  samples.clear();
  EXPECT_THAT(metrics.exposition(), Not(HasSubstr("jobs_done_ratio")));
}

TEST(Metrics, AGaugeThatNobodyKnowsIsOffThePageUntilItIsSetAgain) {
  Metrics metrics;
  Gauge& workers = metrics.gauge(kWorkers);
  workers.set(3);
  workers.withdraw();
  workers.withdraw();
  EXPECT_THAT(metrics.exposition(), Not(HasSubstr("outrigger_workers")));
  workers.add(2);
  EXPECT_THAT(metrics.exposition(), HasSubstr("\noutrigger_workers 2\n"));
  EXPECT_EQ(&workers, &metrics.gauge(kWorkers));
}

TEST(Metrics, NoCountOfSeveralThreadsIsLost) {
  Metrics metrics;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 1000; ++n) metrics.counter(kSteps).add();
      });
    }
    for (int i = 0; i < 10; ++i) metrics.exposition();
  }
  EXPECT_EQ(metrics.counter(kSteps).value(), 4000);
}

TEST(Metrics, TellThisProcessesMemoryAndTime) {
  Metrics metrics;
  const std::string text = metrics.exposition();
  for (const char* name :
       {"process_resident_memory_bytes", "process_start_time_seconds", "process_open_fds"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + name + " "));
    EXPECT_THAT(text, Not(HasSubstr(std::string("\n") + name + " 0\n")));
  }
}

TEST(MetricsDeathTest, LabelsThatWereNotDeclaredAbort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Metrics metrics;
  EXPECT_DEATH(metrics.counter(kStall), "labels differ");
  EXPECT_DEATH(metrics.counter(kSteps, {{"cause", "x"}}), "labels differ");
}

TEST(Metrics, ArePromtoolsIdeaOfGoodMetrics) {
  const std::string tools = OUTRIGGER_SOURCE_DIR "/.deps/bin";
  const std::string promtool = "PATH=\"$PATH:" + tools + "\" promtool ";
  if (std::system((promtool + "--version >/dev/null 2>&1").c_str()) != 0)
    GTEST_SKIP() << "promtool is not installed";
  Metrics metrics;
  metrics.counter(kSteps).add();
  metrics.counter(kStall, {{"cause", "decode"}}).add(1);
  metrics.gauge(kWorkers).set(1);
  metrics.histogram(kStepTime).observe(0.2);
  const TemporaryDirectory folder;
  const auto file = folder.path() / "metrics";
  write_file_atomically(file, metrics.exposition());
  const int status = std::system((promtool + "check metrics <" + file.string()).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << metrics.exposition();
}

}  // namespace
}  // namespace outrigger::telemetry
