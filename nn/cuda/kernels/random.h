#pragma once

#include "nn/cuda/kernels/kernels.h"
#include "nn/cuda/kernels/scalar.h"

namespace outrigger::nn::cuda {

/// The factor of element `element` (in PyTorch's order {C, H, W}) of one sample: what
/// dropout_factors (nn/dropout.h) gives, one at a time. Philox 4x32-10 as in common/random.h.
OUTRIGGER_BOTH inline float dropout_factor(const DropoutDraw& draw, uint64_t slot,
                                           uint32_t element) {
  uint32_t c[4] = {element / 4, draw.layer, static_cast<uint32_t>(slot),
                   static_cast<uint32_t>(slot >> 32)};
  uint32_t key[2] = {draw.key[0], draw.key[1]};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(p1),
        static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(p0)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c[element % 4] < draw.threshold ? 0.0f : draw.kept;
}

}  // namespace outrigger::nn::cuda
