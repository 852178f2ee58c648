#include "gpu-server/report/workers_pace.h"

#include <gtest/gtest.h>

#include <chrono>

namespace outrigger::gpu_server {
namespace {

using std::chrono::seconds;

/// Lines in so many seconds from `from` on, in each of which one is asked for.
int lines(WorkersPace& pace, seconds from, seconds count,
          const std::vector<WorkerMeasures>& workers) {
  int due = 0;
  for (seconds at = from; at < from + count; at += seconds(1))
    due += pace.due(TimePoint(at), workers) ? 1 : 0;
  return due;
}

TEST(WorkersPace, IsOftenAtFirstAndThenSeldom) {
  WorkersPace pace;
  const std::vector<WorkerMeasures> workers(2);
  EXPECT_EQ(lines(pace, seconds(1000), seconds(120), workers), 60);
  EXPECT_EQ(lines(pace, seconds(1120), seconds(3600), workers), 60);
}

TEST(WorkersPace, TellsAtOnceOfAWorkerThatJoinsOrLeaves) {
  WorkersPace pace;
  std::vector<WorkerMeasures> workers{{.name = "a"}, {.name = "b"}};
  lines(pace, seconds(0), seconds(300), workers);
  EXPECT_FALSE(pace.due(TimePoint(seconds(301)), workers));
  workers.push_back({.name = "c"});
  EXPECT_TRUE(pace.due(TimePoint(seconds(301)), workers));
  workers.erase(workers.begin());
  EXPECT_TRUE(pace.due(TimePoint(seconds(302)), workers));
  std::swap(workers[0], workers[1]);
  EXPECT_FALSE(pace.due(TimePoint(seconds(303)), workers)) << "they are the same";
}

}  // namespace
}  // namespace outrigger::gpu_server
