#include "common/random.h"

#include <cmath>
#include <numbers>

namespace outrigger {
namespace {

// splitmix64's finaliser: spreads seed and use over the 64-bit key.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 2> key, std::array<uint32_t, 4> c) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

std::array<uint32_t, 2> random_key(uint64_t seed, RandomUse use) {
  const uint64_t k = mix(seed ^ mix(static_cast<uint64_t>(use)));
  return {static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32)};
}

RandomStream::RandomStream(uint64_t seed, RandomUse use, uint64_t a, uint32_t b)
    : key_(random_key(seed, use)),
      counter_{0, b, static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32)} {}

uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    block_ = philox(key_, counter_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

uint64_t RandomStream::next_u64() {
  const uint64_t low = next_u32();
  return low | (uint64_t{next_u32()} << 32);
}

uint32_t RandomStream::below(uint32_t bound) {
  const uint32_t threshold = (0u - bound) % bound;
  while (true) {
    const uint64_t product = uint64_t{next_u32()} * bound;
    if (static_cast<uint32_t>(product) >= threshold) return static_cast<uint32_t>(product >> 32);
  }
}

uint64_t RandomStream::below64(uint64_t bound) {
  if (bound <= 0xFFFFFFFFull) return below(static_cast<uint32_t>(bound));
  const uint64_t threshold = (0ull - bound) % bound;
  while (true) {
    const uint64_t value = next_u64();
    if (value >= threshold) return value % bound;
  }
}

float RandomStream::uniform() { return static_cast<float>(next_u32() >> 8) * 0x1.0p-24f; }

float RandomStream::normal() {
  const double u = (static_cast<double>(next_u32()) + 1.0) * 0x1.0p-32;  // (0, 1]
  const double v = static_cast<double>(next_u32()) * 0x1.0p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

}  // namespace outrigger
