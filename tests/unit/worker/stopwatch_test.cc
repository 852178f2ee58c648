#include "worker/work/stopwatch.h"

#include <gtest/gtest.h>

namespace outrigger::worker {
namespace {

TEST(Spent, IsWhatTheClockSaysWhereNobodyElseWorksOnTheCores) {
  EXPECT_DOUBLE_EQ((Spent{.clock = 5, .processor = 3}.lasting(1)), 5);
}

TEST(Spent, UnderAQuotaIsAtLeastItsProcessorTimeInTheLongRun) {
  EXPECT_DOUBLE_EQ((Spent{.clock = 3, .processor = 3}.lasting(4)), 12);
  EXPECT_DOUBLE_EQ((Spent{.clock = 15, .processor = 3}.lasting(4)), 15) << "it may have been worse";
}

TEST(Spent, LeavesOutWhatANeighbourHadOfTheCores) {
  EXPECT_DOUBLE_EQ((Spent{.clock = 8, .processor = 3, .neighbour = 4}.lasting(1)), 4);
  EXPECT_DOUBLE_EQ((Spent{.clock = 8, .processor = 6, .neighbour = 4}.lasting(1)), 6)
      << "with cores for both the neighbour takes nothing away";
  EXPECT_DOUBLE_EQ((Spent{.clock = 8, .processor = 3, .neighbour = 8}.lasting(1, 4)), 7)
      << "while it waits for bytes neither";
  EXPECT_DOUBLE_EQ((Spent{.clock = 8, .processor = 6, .neighbour = 8}.lasting(1, 4)), 8)
      << "never more than by the clock";
  EXPECT_DOUBLE_EQ((Spent{.clock = 8, .processor = 3, .neighbour = 4}.lasting(2)), 6);
}

TEST(Besides, IsWhatTheProcessTakesToWhatItsWorkDoes) {
  Besides besides;
  besides.worked(3);
  besides.look(10);
  EXPECT_EQ(besides.times(), 1) << "before the first look it may have done anything";
  besides.worked(0.01);
  besides.look(10.02);
  EXPECT_EQ(besides.times(), 1) << "too little to tell";
  besides.worked(0.03);
  besides.look(10.05);
  EXPECT_NEAR(besides.times(), 1.25, 1e-9);
}

TEST(Besides, FollowsWhatIsNewAndStaysWithinReason) {
  Besides besides;
  besides.look(0);
  double process = 0;
  const auto run = [&](int seconds, double times) {
    for (int i = 0; i < seconds; ++i) {
      besides.worked(1);
      besides.look(process += times);
    }
    return besides.times();
  };
  EXPECT_NEAR(run(4, 1.2), 1.2, 1e-9);
  EXPECT_NEAR(run(8, 1.6), 1.6, 0.01);
  EXPECT_EQ(run(8, 0.5), 1) << "threads that wait for each other took less than all would";
  EXPECT_EQ(run(8, 9), 2);
}

TEST(Besides, LeavesOutWhatIsDoneOnce) {
  Besides besides;
  besides.look(0);
  besides.worked(0.1);
  besides.leave_out(0.3);
  besides.look(0.42);
  EXPECT_NEAR(besides.times(), 1.2, 1e-9);
}

TEST(Stopwatch, AddsUpTheTimesOfAllItsPieces) {
  Spent spent;
  const auto own = ProcessorClock::of_this_thread();
  const TimePoint begin = system_now();
  const Duration had = own.now();
  for (int i = 0; i < 2; ++i) {
    const Stopwatch watch(spent, own);
    const Duration until = own.now() + std::chrono::milliseconds(2);
    while (own.now() < until) {
    }
  }
  EXPECT_GE(spent.processor, 0.004);
  EXPECT_LE(spent.processor, to_seconds(own.now() - had));
  EXPECT_LE(spent.clock, to_seconds(system_now() - begin));
  EXPECT_NEAR(spent.neighbour, spent.processor, 1e-3) << "it is its own neighbour";
}

}  // namespace
}  // namespace outrigger::worker
