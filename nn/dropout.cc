#include "nn/dropout.h"

#include <algorithm>
#include <array>

#include "common/random.h"

namespace outrigger::nn {
namespace {

// Blocks of counters side by side, which the compiler turns into vector code; the same rounds as
// common's philox(), which a test holds.
constexpr size_t kLanes = 16;
using Lanes = std::array<uint32_t, kLanes>;

struct Block {
  Lanes c0, c1, c2, c3;
};

void philox_lanes(std::array<uint32_t, 2> key, Block& block) {
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < kLanes; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * block.c0[i];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * block.c2[i];
      block.c0[i] = static_cast<uint32_t>(p1 >> 32) ^ block.c1[i] ^ key[0];
      block.c1[i] = static_cast<uint32_t>(p1);
      block.c2[i] = static_cast<uint32_t>(p0 >> 32) ^ block.c3[i] ^ key[1];
      block.c3[i] = static_cast<uint32_t>(p0);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
}

}  // namespace

void dropout_factors(const DropoutKey& key, float probability, std::span<float> factors) {
  const std::array<uint32_t, 2> random = random_key(key.seed, RandomUse::kDropout);
  const auto threshold = static_cast<uint32_t>(static_cast<double>(probability) * 0x1.0p32);
  const float kept = 1.0f / (1.0f - probability);
  Block block;
  for (size_t first = 0; first < factors.size(); first += 4 * kLanes) {
    for (size_t i = 0; i < kLanes; ++i) block.c0[i] = static_cast<uint32_t>(first / 4 + i);
    block.c1.fill(static_cast<uint32_t>(key.layer));
    block.c2.fill(static_cast<uint32_t>(key.slot));
    block.c3.fill(static_cast<uint32_t>(key.slot >> 32));
    philox_lanes(random, block);
    std::array<float, 4 * kLanes> piece;
    for (size_t i = 0; i < kLanes; ++i) {
      piece[4 * i] = block.c0[i] < threshold ? 0.0f : kept;
      piece[4 * i + 1] = block.c1[i] < threshold ? 0.0f : kept;
      piece[4 * i + 2] = block.c2[i] < threshold ? 0.0f : kept;
      piece[4 * i + 3] = block.c3[i] < threshold ? 0.0f : kept;
    }
    std::copy_n(piece.begin(), std::min(piece.size(), factors.size() - first),
                factors.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace outrigger::nn
