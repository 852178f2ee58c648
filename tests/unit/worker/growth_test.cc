#include "worker/growth.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace outrigger::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool ends_within(std::stop_source& session, Duration time) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  return std::condition_variable_any().wait_for(lock, session.get_token(), time, [] {
    return false;
  }) || session.stop_requested();
}

TEST(Growth, AsksForTheEndOnceThereAreMoreCoresThanThreadsForAWhile) {
  std::stop_source session;
  std::atomic<int> looks{0};
  const Growth growth(2, session,
                      {.cores = [&] { return ++looks, 3; }, .look = milliseconds(1), .looks = 4});
  EXPECT_TRUE(ends_within(session, seconds(30)));
  EXPECT_EQ(looks, 4);
  EXPECT_TRUE(growth.seen());
}

TEST(Growth, WhatDoesNotLastIsNoGrowth) {
  std::stop_source session;
  std::atomic<int> looks{0};
  const auto cores = [&] { return ++looks % 4 == 0 ? 1 : 8; };
  const Growth growth(2, session, {.cores = cores, .look = milliseconds(1), .looks = 4});
  while (looks < 40 && !session.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_FALSE(session.stop_requested());
  EXPECT_FALSE(growth.seen());
}

TEST(Growth, EndsAtOnceWithItsSession) {
  std::stop_source session;
  const auto begin = std::chrono::steady_clock::now();
  {
    const Growth growth(1, session, {.cores = [] { return 1; }, .look = seconds(60), .looks = 1});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
  EXPECT_FALSE(session.stop_requested());
}

}  // namespace
}  // namespace outrigger::worker
