#pragma once

#include <array>
#include <cstdint>

namespace outrigger {

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a pure
/// function from (key, counter) to 128 random bits. All randomness in a run is drawn so; no
/// generator has state that could depend on which process drew first.
std::array<uint32_t, 4> philox(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter);

/// What a number is drawn for; part of the key, so that two uses never share numbers.
enum class RandomUse : uint32_t {
  kEpochOrder = 1,
  kReplacement = 2,
  kAugmentation = 3,
  kDropout = 4,
  kInitialWeights = 5,
  kStochasticRounding = 6,
  kClassBalance = 7,
  kSyntheticData = 8,
  kBackOff = 9,
  kEvaluationPairs = 10,
};

/// The Philox key of all numbers drawn for one use in one job.
std::array<uint32_t, 2> random_key(uint64_t seed, RandomUse use);

/// A stream of numbers for one (seed, use, a, b): say, one slot's augmentation. Cheap to make; a
/// plain value. Two streams made alike give the same numbers in the same order on every machine.
class RandomStream {
 public:
  /// `a` is 64 bits (a slot, an epoch), `b` 32 (a layer, a try).
  RandomStream(uint64_t seed, RandomUse use, uint64_t a, uint32_t b = 0);

  uint32_t next_u32();
  uint64_t next_u64();
  /// Uniform in [0, bound); unbiased (Lemire's rejection). `bound` > 0.
  uint32_t below(uint32_t bound);
  uint64_t below64(uint64_t bound);
  /// Uniform in [0, 1), a multiple of 2^-24.
  float uniform();
  /// Standard normal by Box-Muller in double; the same on every IEEE machine with the same libm.
  float normal();

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace outrigger
