#include "nn/cuda/optimizer_table.h"

#include <algorithm>
#include <limits>
#include <string>

#include "common/error.h"

namespace outrigger::nn::cuda {
namespace {

void append(std::vector<OptimizerRange>& ranges, const OptimizerRange& range) {
  if (!ranges.empty() && ranges.back().decay == range.decay &&
      ranges.back().trains == range.trains) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

OptimizerTable plan_optimizer(const Graph& graph, const SgdOptions& options) {
  const int64_t count = graph.parameter_count();
  if (count > std::numeric_limits<uint32_t>::max() - kOptimizerBlock) {
    throw InvalidInput("the model has " + std::to_string(count) +
                       " parameters; a GPU's optimizer counts to 2^32");
  }
  OptimizerTable table;
  int64_t end = 0;
  for (const Parameter& parameter : graph.parameters()) {
    ensure(parameter.range.offset == end, "parameters fill their arena in order");
    end = parameter.range.end();
    if (parameter.range.size == 0) continue;
    const bool decays = options.decay_norm_and_bias || parameter.kind == ParameterKind::kWeight;
    append(table.ranges,
           {static_cast<uint32_t>(end), decays ? options.weight_decay : 0.0f, parameter.trainable});
  }
  ensure(end == count, "parameters fill their arena");
  uint32_t range = 0;
  for (int64_t at = 0; at < count; at += kOptimizerBlock) {
    while (table.ranges[range].end <= at) ++range;
    table.first.push_back(range);
  }
  return table;
}

}  // namespace outrigger::nn::cuda
