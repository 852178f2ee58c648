#pragma once

#include <cstdint>
#include <span>

namespace outrigger::nn {

/// Names one sample's dropout in one layer. Every backend uses the mask below, so that it does not
/// matter which one, or which machine, runs the layer.
struct DropoutKey {
  uint64_t seed = 0;  // the job's
  uint64_t slot = 0;  // the sample's
  int layer = 0;      // its index in the graph
};

/// The factors of one sample's elements: 0 with `probability`, else 1 / (1 - probability). Element
/// e, counted in PyTorch's order {C, H, W}, takes number e of RandomStream(seed,
/// RandomUse::kDropout, slot, layer) and is dropped where that number is below probability * 2^32.
/// Pure; thread-safe.
void dropout_factors(const DropoutKey& key, float probability, std::span<float> factors);

}  // namespace outrigger::nn
