#include "nn/cuda/input_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "common/random.h"
#include "host_engine.h"
#include "nn/cuda/pinned_source.h"
#include "tests/fakes/memory_blocks.h"
#include "transport/codec.h"

namespace outrigger::nn::cuda {
namespace {

constexpr int64_t kSamples = 4;  // of a pass
constexpr size_t kSampleBytes = 3000;
constexpr int64_t kPart = 2;  // of a part
const TensorSpec kPixels{ElementType::kUint8, {kSamples, kSampleBytes}};

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
  InputRing ring(engine_, kPixels);
  for (int turn = 0; turn < 8; ++turn) {
    Part first = part(turn % 2 == 0, 2 * turn + 1);
    Part second = part(turn % 4 < 2, 2 * turn + 2);
    put(ring, first, second);
    EXPECT_EQ(take(ring), (std::vector{2 * turn + 1, 2 * turn + 1, 2 * turn + 2, 2 * turn + 2}));
  }
}

// The copies run as late as they may: what went back too early would be another's by then.
TEST_F(InputRingTest, HoldsWhatAQueuedCopyReads) {
  InputRing ring(engine_, kPixels);
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

// Programs that share a ring take inputs of their own shapes through it, in turn.
TEST_F(InputRingTest, BringsInputsOfAnotherShapeBesideOneThatWaits) {
  constexpr int64_t kFew = 1;
  InputRing ring(engine_, {ElementType::kUint8, {kFew, 16}});
  std::vector<std::byte> small(16, std::byte{5});
  const std::vector<uint64_t> slots{5};
  const std::vector<int32_t> labels{5};
  const ForwardInput few{{ElementType::kUint8, {kFew, 16}, small.data()}, kFew, slots, labels};
  for (int turn = 0; turn < 4; ++turn) {
    {
      const auto lock = engine_->enter();
      ring.use({ElementType::kUint8, {kFew, 16}});
      ring.put(std::span(&few, 1));
      ring.use(kPixels);
    }
    Part first = part(turn % 2 == 0, 2 * turn + 1);
    Part second = part(turn % 2 != 0, 2 * turn + 2);
    put(ring, first, second);
    {
      const auto lock = engine_->enter();
      const InputRing::Input in = ring.take();
      std::vector<std::byte> given(16);
      int32_t label = 0;
      engine_->download(given.data(), in.input, given.size());
      engine_->download(&label, in.labels, sizeof label);
      ring.release();
      EXPECT_EQ(given, small) << turn;
      EXPECT_EQ(label, 5) << turn;
    }
    EXPECT_EQ(take(ring), (std::vector{2 * turn + 1, 2 * turn + 1, 2 * turn + 2, 2 * turn + 2}));
  }
}

TEST_F(InputRingTest, ReadsWhatLiesInPinnedMemoryFromThere) {
  InputRing ring(engine_, kPixels);
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
    InputRing ring(engine_, kPixels);
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
    InputRing ring(engine_, kPixels);
    Part first = part(true, 1), second = part(true, 2);
    put(ring, first, second);
  }
  EXPECT_GT(source_->taken_bytes(), before);
  const auto lock = engine_->enter();
  engine_->synchronize();  // nothing reads or writes what is gone
}

/// Activations of two samples as a link brings them in int8, and as the host unpacks them.
struct Activations {
  std::shared_ptr<std::byte> memory;
  transport::EncodedTensor encoded;
  Tensor unpacked;
  std::vector<uint64_t> slots = {1, 2};
  std::vector<int32_t> labels = {1, 2};
};

class PackedInputTest : public InputRingTest {
 protected:
  /// In pinned memory or not; those after a ReLU have no sign.
  Activations activations(ElementType type, bool pinned, bool is_signed, uint64_t seed) {
    Tensor values(ElementType::kFloat32, {kPart, 3, 3, 5});
    RandomStream random(seed, RandomUse::kSyntheticData, 1);
    for (float& value : values.as<float>())
      value = std::max(is_signed ? -9.0f : 0.0f, 8 * random.uniform() - 4);
    if (seed % 3 == 0) values.as<float>()[7] = std::numeric_limits<float>::quiet_NaN();
    Activations made;
    made.encoded = transport::encode(values.view(), WireFormat::kInt8);
    EXPECT_EQ(made.encoded.is_signed, is_signed);
    const auto bytes = made.encoded.data.bytes;
    made.memory = pinned ? source_->acquire(bytes.size())
                         : fakes::MemoryBlocks::create(1)->acquire(bytes.size());
    std::ranges::copy(bytes, made.memory.get());
    made.encoded.data = {{made.memory.get(), bytes.size()}, made.memory};
    made.unpacked = transport::decode(made.encoded, type);
    return made;
  }
  static ForwardInput packed(const Activations& of) {
    const auto packed = *transport::packed_of(of.encoded);
    return {packed.elements, kPart, of.slots, of.labels, of.memory, packed.scales.as<float>()};
  }
  static ForwardInput plain(const Activations& of) {
    return {of.unpacked.view(), kPart, of.slots, of.labels};
  }
  static std::vector<std::byte> joined(const Activations& a, const Activations& b) {
    std::vector<std::byte> bytes;
    for (const auto* part : {&a, &b})
      bytes.insert(bytes.end(), part->unpacked.view().raw().begin(),
                   part->unpacked.view().raw().end());
    return bytes;
  }
};

// Two inputs are under way, and what they came in is gone, before the first is taken.
TEST_F(PackedInputTest, HasTheBitsThatTheHostWouldUnpack) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    InputRing ring(engine_, {type, {kSamples, 3, 3, 5}});
    for (uint64_t turn = 0; turn < 6; ++turn) {
      std::vector<std::vector<std::byte>> expected;
      for (uint64_t pass = 0; pass < 2; ++pass) {
        const uint64_t seed = 10 * turn + 2 * pass;
        const auto first = activations(type, turn % 2 == 0, turn % 3 == 0, seed);
        const auto second = activations(type, pass == 0, turn % 3 != 0, seed + 1);
        const bool mixed = turn % 4 == 3;
        const ForwardInput parts[] = {packed(first), mixed ? plain(second) : packed(second)};
        const auto lock = engine_->enter();
        ring.put(parts);
        expected.push_back(joined(first, second));
      }
      for (const auto& wanted : expected) {
        const auto lock = engine_->enter();
        std::vector<std::byte> given(wanted.size());
        const InputRing::Input in = ring.take();
        ring.unpack();
        engine_->download(given.data(), in.input, given.size());
        ring.release();
        EXPECT_EQ(given, wanted) << to_string(type) << ", turn " << turn;
      }
    }
  }
}

}  // namespace
}  // namespace outrigger::nn::cuda
