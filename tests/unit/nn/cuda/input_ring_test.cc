#include "nn/cuda/input_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "host_engine.h"
#include "nn/cuda/pinned_source.h"

namespace outrigger::nn::cuda {
namespace {

constexpr int64_t kSamples = 4;  // of a pass
constexpr size_t kSampleBytes = 3000;
constexpr int64_t kPart = 2;  // of a part

/// What a pass is given: parts of two samples, in pinned memory or not.
struct Part {
  std::shared_ptr<std::byte> pinned;
  std::vector<std::byte> ordinary;
  std::vector<uint64_t> slots;
  std::vector<int32_t> labels;
  std::byte* data() { return pinned ? pinned.get() : ordinary.data(); }
};

class InputRingTest : public ::testing::Test {
 protected:
  Part part(bool pinned, int value) {
    Part made;
    const size_t bytes = kPart * kSampleBytes;
    if (pinned) {
      made.pinned = source_->acquire(bytes);
    } else {
      made.ordinary.resize(bytes);
    }
    std::memset(made.data(), value, bytes);
    made.slots = {static_cast<uint64_t>(value), static_cast<uint64_t>(value) + 1000};
    made.labels = {value, -value};
    return made;
  }
  static ForwardInput input(Part& of, bool owned = true) {
    ForwardInput in{
        {ElementType::kUint8, {kPart, kSampleBytes}, of.data()}, kPart, of.slots, of.labels};
    if (owned) in.owner = of.pinned;
    return in;
  }
  void put(InputRing& ring, Part& first, Part& second) {
    const ForwardInput parts[] = {input(first), input(second)};
    const auto lock = engine_->enter();
    ring.put(parts);
  }
  /// What the oldest pass is given on the device, each sample's first and last byte.
  std::vector<int> take(InputRing& ring) {
    const auto lock = engine_->enter();
    const InputRing::Input in = ring.take();
    std::vector<std::byte> samples(kSamples * kSampleBytes);
    std::vector<uint64_t> slots(kSamples);
    std::vector<int32_t> labels(kSamples);
    engine_->download(samples.data(), in.input, samples.size());
    engine_->download(slots.data(), in.slots, kSamples * sizeof(uint64_t));
    engine_->download(labels.data(), in.labels, kSamples * sizeof(int32_t));
    ring.release();
    std::vector<int> told;
    for (size_t i = 0; i < kSamples; ++i) {
      told.push_back(std::to_integer<int>(samples[i * kSampleBytes]));
      EXPECT_EQ(samples[(i + 1) * kSampleBytes - 1], samples[i * kSampleBytes]);
      EXPECT_EQ(slots[i] % 1000, static_cast<uint64_t>(told.back()));
      EXPECT_EQ(std::abs(labels[i]), told.back());
    }
    return told;
  }

  const std::shared_ptr<Engine> engine_ = testing::make_host_engine();
  const std::shared_ptr<PinnedSource> source_ = PinnedSource::create(engine_, size_t{1} << 20);
};

TEST_F(InputRingTest, BringsPinnedAndOrdinaryPartsAlike) {
  InputRing ring(engine_, kSamples, kSampleBytes);
  for (int turn = 0; turn < 8; ++turn) {
    Part first = part(turn % 2 == 0, 2 * turn + 1);
    Part second = part(turn % 4 < 2, 2 * turn + 2);
    put(ring, first, second);
    EXPECT_EQ(take(ring), (std::vector{2 * turn + 1, 2 * turn + 1, 2 * turn + 2, 2 * turn + 2}));
  }
}

// The copies run as late as they may: what went back too early would be another's by then.
TEST_F(InputRingTest, HoldsWhatAQueuedCopyReads) {
  InputRing ring(engine_, kSamples, kSampleBytes);
  for (int pass = 0; pass < 2; ++pass) {
    Part first = part(true, 10 * pass + 1);
    Part second = part(false, 10 * pass + 2);
    put(ring, first, second);
    std::ranges::fill(second.ordinary, std::byte{99});  // that was copied
  }
  std::vector<Part> others;
  for (int i = 0; i < 4; ++i) others.push_back(part(true, 77));
  EXPECT_EQ(take(ring), (std::vector{1, 1, 2, 2}));
  EXPECT_EQ(take(ring), (std::vector{11, 11, 12, 12}));
}

TEST_F(InputRingTest, ReadsWhatLiesInPinnedMemoryFromThere) {
  InputRing ring(engine_, kSamples, kSampleBytes);
  Part first = part(true, 1), second = part(true, 2);
  const ForwardInput parts[] = {input(first), input(second, /*owned=*/false)};
  {
    const auto lock = engine_->enter();
    ring.put(parts);
  }
  // Nobody may, and here it shows when which part is read.
  std::memset(first.data(), 51, kPart * kSampleBytes);
  std::memset(second.data(), 52, kPart * kSampleBytes);
  const auto lock = engine_->enter();
  std::byte samples[kSamples * kSampleBytes];
  engine_->download(samples, ring.take().input, sizeof samples);
  EXPECT_EQ(samples[0], std::byte{51});
  EXPECT_EQ(samples[kPart * kSampleBytes], std::byte{2}) << "the caller's until put returned";
}

TEST_F(InputRingTest, GivesPinnedPartsBackWhenItsPlaceIsUsedAgain) {
  std::weak_ptr<const void> third;
  {
    InputRing ring(engine_, kSamples, kSampleBytes);
    Part ordinary = part(false, 3);
    Part first = part(true, 1);
    const std::weak_ptr<const void> watched = first.pinned;
    put(ring, first, ordinary);
    first = {};
    EXPECT_FALSE(watched.expired());
    for (int pass = 0; pass < 2; ++pass) {
      put(ring, ordinary, ordinary);
      take(ring);
    }
    EXPECT_TRUE(watched.expired());
    take(ring);
    Part last = part(true, 4);
    third = last.pinned;
    put(ring, ordinary, last);
  }
  EXPECT_TRUE(third.expired()) << "the ring is gone";
}

TEST_F(InputRingTest, HoldsWhatACopyReadsUntilItIsGoneItself) {
  const size_t before = source_->taken_bytes();
  {
    InputRing ring(engine_, kSamples, kSampleBytes);
    Part first = part(true, 1), second = part(true, 2);
    put(ring, first, second);
  }
  EXPECT_GT(source_->taken_bytes(), before);
  const auto lock = engine_->enter();
  engine_->synchronize();  // nothing reads or writes what is gone
}

}  // namespace
}  // namespace outrigger::nn::cuda
