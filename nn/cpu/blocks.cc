#include "nn/cpu/blocks.h"

namespace outrigger::nn::cpu {
namespace {

// Below this a call's fixed cost shows; see the decision's table.
constexpr int64_t kMultiplyAddsPerBlock = 8'000'000;
// Each weight's partial sum costs about as much as so many terms of it.
constexpr int64_t kPlacesPerChunk = 512;

int64_t round_up_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t block_samples(const Graph& graph) {
  const int64_t per_sample = std::max<int64_t>(1, graph.multiply_adds(graph.whole()));
  int64_t size = 4;
  while (size < 16 && size * per_sample < kMultiplyAddsPerBlock) size *= 2;
  return size;
}

int64_t samples_to_time(const Graph& graph, int64_t batch, int threads) {
  // A block has no more than a quarter of the samples.
  return std::min(batch, choose_blocks(graph, batch).size * std::max(4, threads));
}

double times_as_long(const Graph& graph, int64_t batch, int64_t samples, int threads) {
  const auto takes = [&](int64_t of) {
    return static_cast<double>(choose_blocks(graph, of).of_busiest(threads));
  };
  return takes(batch) / takes(samples);
}

Blocks choose_chunks(const Blocks& blocks, int64_t places) {
  const int64_t least = round_up_div(kPlacesPerChunk, places);
  const int64_t count = std::max<int64_t>(1, blocks.batch / least);
  const int64_t in_blocks = round_up_div(round_up_div(blocks.batch, count), blocks.size);
  return {blocks.batch, std::min(blocks.batch, in_blocks * blocks.size)};
}

}  // namespace outrigger::nn::cpu
