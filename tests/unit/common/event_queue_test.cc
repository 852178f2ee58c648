#include "common/event_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace outrigger {
namespace {

using std::chrono::milliseconds;

TEST(EventQueue, RunsEventsInTheOrderOfTime) {
  EventQueue events;
  std::string seen;
  events.after(milliseconds(2), [&] { seen += 'b'; });
  events.after(milliseconds(1), [&] {
    seen += 'a';
    events.after(milliseconds(5), [&] { seen += 'd'; });
  });
  events.after(milliseconds(2), [&] { seen += 'c'; });
  while (!events.empty()) events.run_one();
  EXPECT_EQ(seen, "abcd");
  EXPECT_EQ(events.now(), TimePoint{} + milliseconds(6));
}

TEST(EventQueue, AMomentThatHasPassedIsNow) {
  EventQueue events;
  events.advance_to(TimePoint{} + milliseconds(3));
  events.at(TimePoint{}, [] {});
  EXPECT_EQ(events.next(), TimePoint{} + milliseconds(3));
}

TEST(EventQueueDeathTest, TimeDoesNotPassOverAnEvent) {
  EventQueue events;
  events.after(milliseconds(1), [] {});
  EXPECT_DEATH(events.advance_to(TimePoint{} + milliseconds(2)), "passed over");
}

}  // namespace
}  // namespace outrigger
