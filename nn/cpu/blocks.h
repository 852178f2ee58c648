#pragma once

#include <algorithm>
#include <cstdint>

#include "nn/graph.h"

namespace outrigger::nn::cpu {

/// A micro-batch cut into blocks of `size` samples, the last of which may be smaller
/// (docs/decisions/0002-blocks-of-samples.md).
struct Blocks {
  int64_t batch = 1;
  int64_t size = 1;

  int count() const { return static_cast<int>((batch + size - 1) / size); }
  int64_t first(int block) const { return block * size; }
  int64_t samples(int block) const { return std::min(size, batch - first(block)); }
  /// Samples of the last block where it is smaller; else 0.
  int64_t rest() const { return batch % size; }
};

/// Follows from the whole graph and the batch alone, so that it is the same in every segment and on
/// every machine.
Blocks choose_blocks(const Graph& graph, int64_t batch);

/// As many samples, at most `batch`, as tell what a pass over `batch` takes on so many threads: in
/// blocks of the same size, one for each thread.
int64_t samples_to_time(const Graph& graph, int64_t batch, int threads);

/// The chunks, whole blocks each, whose weight gradients are one sum, for a layer with so many
/// output places a sample.
Blocks choose_chunks(const Blocks& blocks, int64_t places);

}  // namespace outrigger::nn::cpu
