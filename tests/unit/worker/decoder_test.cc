#include "worker/work/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "data/decode.h"
#include "tests/support/comes_true.h"

namespace outrigger::worker {
namespace {

using testing::ElementsAre;

/// Does what a test says with each sample.
class ToldPixels final : public PixelSource {
 public:
  explicit ToldPixels(std::function<void(const feed::LeaseSample&)> make)
      : make_(std::move(make)) {}
  Duration make(const feed::LeaseSample& sample, bool /*evaluation*/,
                std::span<std::byte> pixels) override {
    make_(sample);
    std::ranges::fill(pixels, static_cast<std::byte>(sample.slot));
    return Duration{0};
  }

 private:
  const std::function<void(const feed::LeaseSample&)> make_;
};

/// Until another thread says so.
class Gate {
 public:
  void open() {
    open_ = true;
    open_.notify_all();
  }
  void wait() { open_.wait(false); }

 private:
  std::atomic<bool> open_ = false;
};

constexpr uint64_t kOfALease = 4;

class DecoderTest : public testing::Test {
 protected:
  /// Its samples have slots from `kOfALease * step` on.
  std::shared_ptr<Decoding> lease(uint64_t step) {
    auto lease = std::make_shared<feed::Lease>();
    lease->key.step = step;
    for (uint64_t i = 0; i < kOfALease; ++i)
      lease->samples.push_back({.slot = kOfALease * step + i});
    return std::make_shared<Decoding>(std::move(lease), Shape{2, 2, 1}, nullptr);
  }
  static feed::WorkKey key(uint64_t step) { return {.step = step}; }
};

TEST_F(DecoderTest, AloneItMakesOneSampleAfterTheOtherInTheOrderOfLeases) {
  std::vector<uint64_t> made;
  ToldPixels pixels([&](const auto& sample) { made.push_back(sample.slot); });
  ThreadPool threads(1);
  Decoder decoder(threads, pixels, {});
  const auto later = lease(1);
  const auto first = lease(0);
  decoder.add(key(1), later);
  decoder.add(key(0), first);
  EXPECT_EQ(later->unclaimed(), kOfALease);
  for (uint64_t i = 0; i < kOfALease; ++i) {
    EXPECT_FALSE(first->done());
    EXPECT_TRUE(decoder.make_one());
  }
  EXPECT_TRUE(first->done());
  while (decoder.make_one()) continue;
  EXPECT_THAT(made, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(later->pixels().as<uint8_t>()[4], 5);
  EXPECT_GT(decoder.take_worked(), 0);
  EXPECT_EQ(decoder.take_worked(), 0);
}

// Images take from one to ten times as long: who waits for the slowest of each lease waits a lot.
TEST_F(DecoderTest, NobodyWaitsForWhoeverIsAtALeasesLastSample) {
  Gate last;
  ToldPixels pixels([&](const auto& sample) {
    if (sample.slot == kOfALease - 1) last.wait();  // until the next lease's last sample is made
    if (sample.slot == 2 * kOfALease - 1) last.open();
  });
  ThreadPool threads(2);
  Decoder decoder(threads, pixels, {});
  const auto first = lease(0);
  const auto second = lease(1);
  decoder.add(key(0), first);
  decoder.add(key(1), second);
  while (decoder.make_one()) continue;
  while (!first->done() || !second->done()) std::this_thread::yield();
  EXPECT_EQ(first->pixels().as<uint8_t>()[4 * (kOfALease - 1)], kOfALease - 1);
}

TEST_F(DecoderTest, ThreadsOfThePoolDecodeByThemselvesAndTellOfEachLease) {
  ToldPixels pixels([](const auto&) {});
  ThreadPool threads(3);
  Decoder decoder(threads, pixels, {});
  std::atomic<int> told = 0;
  decoder.watch({[&] {
    ++told;
    told.notify_all();
  }});
  for (int round = 0; round < 50; ++round) {
    told = 0;
    const auto one = lease(0);
    decoder.add(key(0), one);
    told.wait(0);
    EXPECT_TRUE(one->done());
  }
}

TEST_F(DecoderTest, WhereThreadsAreManyAsManyDecodeAndItsOwnerStaysFree) {
  constexpr int kThreads = 4;
  std::atomic<int> at_once = 0;
  ToldPixels pixels([&](const auto&) {
    ++at_once;
    at_once.notify_all();
    for (int seen = at_once; seen < kThreads; seen = at_once) at_once.wait(seen);
  });
  ThreadPool threads(kThreads);
  Decoder decoder(threads, pixels, {});
  const auto one = lease(0);
  decoder.add(key(0), one);
  EXPECT_FALSE(decoder.make_one());
  while (!one->done()) std::this_thread::yield();
  EXPECT_GT(decoder.take_busy(), 0);
}

TEST_F(DecoderTest, PausedNobodyBeginsWithASample) {
  std::atomic<int> made = 0;
  ToldPixels pixels([&](const auto&) { ++made; });
  ThreadPool threads(3);
  Decoder decoder(threads, pixels, {});
  const auto one = lease(0);
  {
    const Decoder::Pause pause(decoder);
    decoder.add(key(0), one);
    threads.parallel_for(3, [](int) {});
    EXPECT_EQ(one->unclaimed(), kOfALease);
    EXPECT_EQ(made, 0);
  }
  while (!one->done()) std::this_thread::yield();
}

TEST_F(DecoderTest, PausedForFewThreadsTheOthersGoOn) {
  constexpr int kThreads = 8;
  constexpr int kOfTheLoop = 5;
  constexpr int kOthers = kThreads - kOfTheLoop;
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  ToldPixels pixels([&](const auto&) {
    const int now = ++at_once;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    EXPECT_TRUE(testing_support::comes_true([&] { return most >= kOthers; }));
    --at_once;
  });
  ThreadPool threads(kThreads);
  Decoder decoder(threads, pixels, {});
  const Decoder::Pause pause(decoder, kOfTheLoop);
  std::vector<std::shared_ptr<Decoding>> leases;
  for (uint64_t step = 0; step < 20; ++step)
    decoder.add(key(step), leases.emplace_back(lease(step)));
  // While the loop of a pass goes on.
  threads.parallel_for(kOfTheLoop, [&](int) {
    EXPECT_TRUE(testing_support::comes_true([&] { return leases.back()->done(); }));
  });
  EXPECT_EQ(most, kOthers);
}

TEST_F(DecoderTest, ShowsTheOldestSampleThatIsBeingMade) {
  Gate second;
  ToldPixels pixels([&](const auto& sample) {
    if (sample.slot == 1) second.wait();
  });
  ThreadPool threads(4);
  std::atomic<uint64_t> at_sample = 0;
  Decoder decoder(threads, pixels, {});
  decoder.watch({{}, &at_sample});
  const auto one = lease(0);
  decoder.add(key(0), one);
  while (at_sample != 2 || one->unclaimed() > 0) std::this_thread::yield();
  second.open();
  while (!one->done() || at_sample != 0) std::this_thread::yield();
  EXPECT_EQ(at_sample, 0u);
  decoder.watch({});
}

// Else a worker whose read hangs would look as if it waited, and never end.
TEST_F(DecoderTest, SettlesWhenTheSamplesUnderWayAreMadeAndShowsThemUntilThen) {
  Gate gate;
  std::atomic<int> begun = 0;
  ToldPixels pixels([&](const auto&) {
    ++begun;
    gate.wait();
  });
  ThreadPool threads(2);
  std::atomic<uint64_t> at_sample = 0;
  Decoder decoder(threads, pixels, {});
  decoder.watch({{}, &at_sample});
  decoder.add(key(0), lease(0));
  while (begun == 0) std::this_thread::yield();
  std::atomic<bool> settled = false;
  std::jthread owner([&] {
    decoder.settle();
    settled = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(settled);
  EXPECT_EQ(at_sample, 1u);
  gate.open();
  owner.join();
  EXPECT_EQ(at_sample, 0u);
  EXPECT_LE(begun, 2) << "one may have been claimed before it was asked to settle";
}

TEST_F(DecoderTest, WantsTheFilesOfOneLeaseMoreAndForOthersAllLeases) {
  ToldPixels pixels([](const auto&) {});
  ThreadPool one(1);
  Decoder alone(one, pixels, {});
  alone.add(key(0), lease(0));
  EXPECT_TRUE(alone.wants_more());
  alone.add(key(1), lease(1));
  EXPECT_FALSE(alone.wants_more());
  ThreadPool two(2);
  Decoder with_others(two, pixels, {});
  const Decoder::Pause pause(with_others);
  for (uint64_t step = 0; step < 4; ++step) with_others.add(key(step), lease(step));
  EXPECT_TRUE(with_others.wants_more());
}

TEST_F(DecoderTest, WhatIsRemovedIsMadeNoMore) {
  std::atomic<int> made = 0;
  ToldPixels pixels([&](const auto&) { ++made; });
  ThreadPool threads(1);
  Decoder decoder(threads, pixels, {});
  decoder.add(key(0), lease(0));
  EXPECT_TRUE(decoder.make_one());
  decoder.remove(key(0));
  EXPECT_FALSE(decoder.make_one());
  EXPECT_EQ(made, 1);
}

TEST_F(DecoderTest, TellsInOrderWhichSamplesAreNoImages) {
  ToldPixels pixels([&](const auto& sample) {
    if (sample.slot == 1) throw data::NoImage("nothing");
    if (sample.slot == 3) throw data::BrokenImage("damaged");
  });
  ThreadPool threads(2);
  Decoder decoder(threads, pixels, {});
  const auto one = lease(0);
  decoder.add(key(0), one);
  while (decoder.make_one()) continue;
  while (!one->done()) std::this_thread::yield();
  const auto broken = one->take_broken();
  ASSERT_EQ(broken.size(), 2u);
  EXPECT_EQ(broken[0].position, 1u);
  EXPECT_TRUE(broken[0].always);
  EXPECT_EQ(broken[1].position, 3u);
  EXPECT_FALSE(broken[1].always);
}

TEST_F(DecoderTest, EndsALeaseAtTheFirstSampleThatCannotBeRead) {
  ToldPixels pixels([&](const auto& sample) {
    if (sample.slot == 1) throw IoError("no such file");
    if (sample.slot == kOfALease) throw std::runtime_error("no memory");
  });
  ThreadPool threads(1);
  Decoder decoder(threads, pixels, {});
  const auto unreadable = lease(0);
  const auto failed = lease(1);
  decoder.add(key(0), unreadable);
  EXPECT_TRUE(decoder.make_one());
  EXPECT_TRUE(decoder.make_one());
  EXPECT_TRUE(unreadable->done());
  EXPECT_EQ(unreadable->read_error(), "no such file");
  EXPECT_NO_THROW(unreadable->rethrow());
  decoder.add(key(1), failed);
  EXPECT_TRUE(decoder.make_one());
  EXPECT_TRUE(failed->done());
  EXPECT_THROW(failed->rethrow(), std::runtime_error);
  EXPECT_FALSE(decoder.make_one());
}

TEST_F(DecoderTest, CountsSecondsOfAllThreads) {
  ToldPixels pixels([](const auto&) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  ThreadPool threads(1);
  Decoder decoder(threads, pixels, {});
  const auto one = lease(0);
  decoder.add(key(0), one);
  while (decoder.make_one()) continue;
  feed::WorkTimes alone;
  one->tell(alone, 1, 1);
  EXPECT_GE(alone.decode, 0.005 * kOfALease);
  feed::WorkTimes of_four;
  one->tell(of_four, 1, 4);
  EXPECT_FLOAT_EQ(of_four.decode, alone.decode / 4);
}

}  // namespace
}  // namespace outrigger::worker
