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
  Trace trace("server", clock);
  clock.advance(5us);
  {
    const auto span = trace.span("head", 2, 7, 3);
    clock.advance(2500ns);
  }
  const auto events = complete_events(trace);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["name"], "head");
  EXPECT_EQ(events[0]["tid"], 2);
  EXPECT_EQ(events[0]["ts"], 5.0);
  EXPECT_EQ(events[0]["dur"], 2.5);
  EXPECT_EQ(events[0]["args"], (nlohmann::json{{"step", 7}, {"index", 3}}));
}

TEST(Trace, KeepsTheLastEventsInOrder) {
  const FakeClock clock;
  Trace trace("server", clock, 3);
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
  Trace trace("server", clock, 0);
  { const auto span = trace.span("head"); }
  EXPECT_TRUE(complete_events(trace).empty());
}

TEST(Trace, SeveralThreadsMayRecordWhileItIsWritten) {
  const SystemClock clock;
  const TemporaryDirectory folder;
  Trace trace("server", clock, 100);
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
