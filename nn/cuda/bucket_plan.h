#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/graph.h"
#include "nn/parameter.h"

namespace outrigger::nn::cuda {

/// A layer's gradients, and the step of the backward pass behind which they are whole; -1: from the
/// start, since it does not train.
struct GradientPiece {
  Range range;
  int step = -1;
};

/// Gradients that leave for the other ranks together, behind a step of the backward pass.
struct GradientBucket {
  Range range;
  int step = -1;
};

/// Below this a sum over ranks takes as long as its latency. 25 MiB, as PyTorch's (Li et al.,
/// "PyTorch Distributed", VLDB 2020, figure 7).
inline constexpr int64_t kBucketFloats = int64_t{25} << 18;

/// Joins pieces from the arena's end, where the backward pass starts, to buckets of `least` floats
/// and more; what is left at the arena's begin is the last one. Every bucket goes as early as it
/// can, and never before one that lies behind it. `pieces` follow one another in the arena. Pure;
/// every rank has the same.
std::vector<GradientBucket> plan_buckets(std::span<const GradientPiece> pieces, int64_t least);
/// Of a segment's gradients, from its own first on. `step_of` says a layer's step, on which no
/// bucket's range depends.
std::vector<GradientBucket> plan_buckets(const Graph& graph, Segment segment,
                                         const std::function<int(int layer)>& step_of);

}  // namespace outrigger::nn::cuda
