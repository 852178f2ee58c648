#include "training/simulator/processor.h"

#include <gtest/gtest.h>

namespace outrigger::training {
namespace {

double seconds(TimePoint when) {
  return std::chrono::duration<double>(when.time_since_epoch()).count();
}

TEST(Processor, AloneWorkTakesItsTime) {
  EventQueue events;
  Processor cores(events);
  bool done = false;
  cores.start(1.5, [&] { done = true; });
  while (!done) events.run_one();
  EXPECT_NEAR(seconds(events.now()), 1.5, 1e-6);
}

TEST(Processor, TwoThatMeetShareTheCores) {
  EventQueue events;
  Processor cores(events);
  double first = 0;
  double second = 0;
  cores.start(1.0, [&] { first = seconds(events.now()); });
  events.after(std::chrono::milliseconds(500),
               [&] { cores.start(1.0, [&] { second = seconds(events.now()); }); });
  while (!events.empty()) events.run_one();
  // Half is done when the second comes; the other half takes twice its time.
  EXPECT_NEAR(first, 1.5, 1e-6);
  EXPECT_NEAR(second, 2.0, 1e-6);
}

}  // namespace
}  // namespace outrigger::training
