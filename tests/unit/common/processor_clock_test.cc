#include "common/processor_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace outrigger {
namespace {

TEST(ProcessorClock, TellsOfAnotherThreadWhatItHasHad) {
  std::atomic<bool> works{true};
  std::atomic<bool> stop{false};
  std::jthread other([&] {
    while (works) {
    }
    stop.wait(false);
  });
  const ProcessorClock clock(other.native_handle());
  const ProcessorClock own = ProcessorClock::of_this_thread();
  const Duration at_first = clock.now();
  const Duration own_at_first = own.now();
  while (clock.now() < at_first + std::chrono::milliseconds(30)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(own.now() - own_at_first, std::chrono::milliseconds(30)) << "it slept";
  works = false;
  // It may be in its last round still.
  Duration rested = clock.now();
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (clock.now() == rested) break;
    rested = clock.now();
  }
  EXPECT_EQ(clock.now(), rested) << "who waits has nothing of processors";
  stop = true;
  stop.notify_all();
}

}  // namespace
}  // namespace outrigger
