#include "telemetry/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "common/file.h"

namespace outrigger::telemetry {
namespace {

using namespace std::chrono_literals;

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{1h};
};

std::vector<nlohmann::json> complete_events(const Trace& trace) {
  std::vector<nlohmann::json> events;
  const auto all = nlohmann::json::parse(trace.json());
  for (const auto& event : all["traceEvents"]) {
    if (event["ph"] == "X") events.push_back(event);
  }
  return events;
}

TEST(Trace, ASpanLastsAsLongAsItsScope) {
  FakeClock clock;
  Trace trace("server", clock, {.made = {}});
  clock.advance(5us);
  {
    const auto span = trace.span("head", 2, 7, 3);
    clock.advance(3us);
  }
  const auto events = complete_events(trace);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["name"], "head");
  EXPECT_EQ(events[0]["tid"], 2);
  EXPECT_EQ(events[0]["ts"], 5);
  EXPECT_EQ(events[0]["dur"], 3);
  EXPECT_EQ(events[0]["args"], (nlohmann::json{{"step", 7}, {"index", 3}}));
}

TEST(Trace, EventsThatFollowOneAnotherDoNotOverlap) {
  FakeClock clock;
  Trace trace("server", clock);
  for (int i = 0; i < 20; ++i) {
    const auto span = trace.span("step");
    clock.advance(1700ns);
  }
  int64_t free = 0;
  for (const auto& event : complete_events(trace)) {
    EXPECT_GE(event["ts"], free);
    free = event["ts"].get<int64_t>() + event["dur"].get<int64_t>();
  }
}

TEST(Trace, SeveralOfOneMachineAreOneByTheClockOnTheWall) {
  const TemporaryDirectory folder;
  const std::vector files{folder.path() / "trace.json", folder.path() / "trace-1.json"};
  const std::chrono::system_clock::time_point noon{500'000h};
  for (int rank = 0; rank < 2; ++rank) {
    FakeClock clock;
    clock.advance(rank * 1h);  // of no machine that they share
    Trace trace("server " + std::to_string(rank), clock,
                {.process = rank, .made = noon + rank * 1s});
    trace.name_track(2, "device");
    { const auto span = trace.span("step", 2); }
    trace.write(files[static_cast<size_t>(rank)]);
  }
  const auto all = nlohmann::json::parse(merged_traces(files))["traceEvents"];
  std::vector<int64_t> begins, processes;
  for (const auto& event : all) {
    if (event["ph"] != "X") continue;
    begins.push_back(event["ts"]);
    processes.push_back(event["pid"]);
  }
  EXPECT_EQ(processes, (std::vector<int64_t>{0, 1}));
  ASSERT_EQ(begins.size(), 2u);
  EXPECT_EQ(begins[0], std::chrono::microseconds(500'000h).count());
  EXPECT_EQ(begins[1] - begins[0], 1'000'000);
}

TEST(Trace, KeepsTheLastEventsInOrder) {
  const FakeClock clock;
  Trace trace("server", clock, {.capacity = 3});
  for (int step = 0; step < 5; ++step)
    trace.record({.name = "step", .begin = clock.now(), .step = step});
  const auto events = complete_events(trace);
  ASSERT_EQ(events.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(events[i]["args"]["step"], i + 2);
}

TEST(Trace, NamesTheProcessAndItsTracks) {
  const FakeClock clock;
  Trace trace("worker \"3\"", clock);
  trace.name_track(1, "decode");
  const auto events = nlohmann::json::parse(trace.json())["traceEvents"];
  EXPECT_EQ(events[0]["args"]["name"], "worker \"3\"");
  EXPECT_EQ(events[1]["name"], "thread_name");
  EXPECT_EQ(events[1]["args"]["name"], "decode");
}

TEST(Trace, WithoutCapacityRecordsNothing) {
  const FakeClock clock;
  Trace trace("server", clock, {.capacity = 0});
  { const auto span = trace.span("head"); }
  EXPECT_TRUE(complete_events(trace).empty());
}

TEST(Trace, SeveralThreadsMayRecordWhileItIsWritten) {
  const SystemClock clock;
  const TemporaryDirectory folder;
  Trace trace("server", clock, {.capacity = 100});
  {
    std::vector<std::jthread> threads;
    for (int track = 0; track < 4; ++track) {
      threads.emplace_back([&trace, track] {
        for (int i = 0; i < 500; ++i) const auto span = trace.span("work", track);
      });
    }
    trace.write(folder.path() / "trace.json");
  }
  EXPECT_TRUE(nlohmann::json::accept(read_file(folder.path() / "trace.json")));
  EXPECT_EQ(complete_events(trace).size(), 100u);
}

}  // namespace
}  // namespace outrigger::telemetry
