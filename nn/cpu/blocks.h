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
  /// Samples that the busiest of so many threads has, one block after the other.
  int64_t of_busiest(int threads) const {
    const int last = (count() - 1) / threads;  // round, in which it may be the last block's
    return last * size + samples(last * threads);
  }
};

/// How many samples a block has, where a quarter of the batch has as many. Follows from the whole
/// graph alone, so that it is the same in every segment and on every machine.
int64_t block_samples(const Graph& graph);

/// Four blocks or nearly as many at least, for four threads.
constexpr Blocks blocks_of(int64_t block_samples, int64_t batch) {
  return {batch, std::min(block_samples, (batch + 3) / 4)};
}

inline Blocks choose_blocks(const Graph& graph, int64_t batch) {
  return blocks_of(block_samples(graph), batch);
}

/// As many samples, at most `batch`, as tell what a pass over `batch` takes on so many threads: in
/// blocks of the same size, one for each thread.
int64_t samples_to_time(const Graph& graph, int64_t batch, int threads);

/// How many times as long a pass over `batch` takes as one over those: as each thread has blocks
/// one after the other.
double times_as_long(const Graph& graph, int64_t batch, int64_t samples, int threads);

/// The chunks, whole blocks each, whose weight gradients are one sum, for a layer with so many
/// output places a sample.
Blocks choose_chunks(const Blocks& blocks, int64_t places);

}  // namespace outrigger::nn::cpu
