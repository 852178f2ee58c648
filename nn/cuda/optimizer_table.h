#pragma once

#include <cstdint>
#include <vector>

#include "nn/cuda/kernels/kernels.h"
#include "nn/graph.h"
#include "nn/optimizer.h"

namespace outrigger::nn::cuda {

/// Which rule each parameter of the arena has, for one kernel over all of them.
struct OptimizerTable {
  std::vector<OptimizerRange> ranges;  // rising; the last ends with the arena
  std::vector<uint32_t> first;         // of each block of kOptimizerBlock: the range it starts in
};

/// Neighbours with one rule are one range. Pure. Throws InvalidInput where the arena has 2^32
/// parameters or more, which a kernel cannot count.
OptimizerTable plan_optimizer(const Graph& graph, const SgdOptions& options);

}  // namespace outrigger::nn::cuda
