#include "nn/cuda/pinned_source.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "host_engine.h"
#include "nn/cuda/pinned_ranges.h"

namespace outrigger::nn::cuda {
namespace {

constexpr size_t kPageBytes = 4096;

TEST(PinnedRanges, HoldWhatLiesInOneOfThemWhole) {
  alignas(64) std::byte memory[300];
  PinnedRanges ranges;
  EXPECT_FALSE(ranges.hold(memory, 1));
  ranges.given(memory + 100, 100);
  ranges.given(memory + 200, 50);
  EXPECT_TRUE(ranges.hold(memory + 100, 100));
  EXPECT_TRUE(ranges.hold(memory + 150, 50));
  EXPECT_TRUE(ranges.hold(memory + 249, 1));
  EXPECT_FALSE(ranges.hold(memory + 99, 1));
  EXPECT_FALSE(ranges.hold(memory + 99, 50)) << "it begins before";
  EXPECT_FALSE(ranges.hold(memory + 150, 51)) << "it ends in another";
  EXPECT_FALSE(ranges.hold(memory + 250, 1));
  ranges.released(memory + 100);
  EXPECT_FALSE(ranges.hold(memory + 150, 1));
  EXPECT_TRUE(ranges.hold(memory + 200, 50));
}

TEST(PinnedSource, GivesPinnedMemoryAndUsesItAgain) {
  const auto engine = testing::make_host_engine();
  const auto source = PinnedSource::create(engine, 100 * kPageBytes);
  auto first = source->acquire(10'000);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.get()) % 64, 0u);
  EXPECT_TRUE(engine->is_pinned(first.get(), 10'000));
  std::byte* const where = first.get();
  const auto second = source->acquire(10'000);
  EXPECT_NE(second.get(), where);
  EXPECT_EQ(source->taken_bytes(), 6 * kPageBytes);
  first.reset();
  EXPECT_EQ(source->acquire(9'000).get(), where);
  EXPECT_NE(source->acquire(100).get(), where) << "that would waste most of it";
  EXPECT_EQ(source->taken_bytes(), 7 * kPageBytes);
}

TEST(PinnedSource, GivesUnusedMemoryBackWhereItMakesRoomForWhatIsWanted) {
  const auto engine = testing::make_host_engine();
  const auto source = PinnedSource::create(engine, 10 * kPageBytes);
  const auto kept = source->acquire(2 * kPageBytes);
  std::memset(kept.get(), 5, 2 * kPageBytes);
  EXPECT_NE(source->acquire(4 * kPageBytes), nullptr);
  EXPECT_NE(source->acquire(8 * kPageBytes), nullptr);
  EXPECT_EQ(source->taken_bytes(), 10 * kPageBytes);
  EXPECT_EQ(source->acquire(9 * kPageBytes), nullptr) << "what is used cannot go";
  EXPECT_EQ(kept.get()[2 * kPageBytes - 1], std::byte{5});
}

TEST(PinnedSource, TakesALargerBlockThanItNeedsWhereNoMoreIsToBeHad) {
  const auto engine = testing::make_host_engine();
  const auto source = PinnedSource::create(engine, 10 * kPageBytes);
  std::byte* const only = source->acquire(10 * kPageBytes).get();
  EXPECT_EQ(source->acquire(kPageBytes).get(), only);
}

TEST(PinnedSource, HasNoneLeftWhereTheEngineRefusesAndGoesOnWithWhatItHas) {
  const auto engine = testing::make_host_engine({}, 6 * kPageBytes);
  const auto source = PinnedSource::create(engine, 100 * kPageBytes);
  auto first = source->acquire(4 * kPageBytes);
  EXPECT_EQ(source->acquire(4 * kPageBytes), nullptr);
  EXPECT_EQ(source->acquire(kPageBytes), nullptr) << "it does not ask again";
  EXPECT_EQ(source->taken_bytes(), 4 * kPageBytes);
  std::byte* const where = first.get();
  first.reset();
  EXPECT_EQ(source->acquire(3 * kPageBytes).get(), where);
}

TEST(PinnedSource, LivesAsLongAsWhatItGave) {
  std::weak_ptr<Engine> engine;
  std::shared_ptr<std::byte> memory;
  {
    const auto open = testing::make_host_engine();
    engine = open;
    memory = PinnedSource::create(open, 10 * kPageBytes)->acquire(100);
  }
  EXPECT_TRUE(engine.lock()->is_pinned(memory.get(), 100));
  memory.reset();
  EXPECT_TRUE(engine.expired());
}

TEST(PinnedSource, ServesManyThreads) {
  const auto source = PinnedSource::create(testing::make_host_engine(), 40 * kPageBytes);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 200; ++i) {
        const size_t bytes = (1 + (i * 7 + static_cast<size_t>(t)) % 20) * kPageBytes;
        const auto memory = source->acquire(bytes);
        if (memory == nullptr) continue;
        std::memset(memory.get(), t, bytes);
        EXPECT_EQ(memory.get()[0], std::byte(t));
        EXPECT_EQ(memory.get()[bytes - 1], std::byte(t));
      }
    });
  }
  threads.clear();
  EXPECT_LE(source->taken_bytes(), 40 * kPageBytes);
}

}  // namespace
}  // namespace outrigger::nn::cuda
