#include <algorithm>
#include <functional>

#include "nn/cuda/program.h"

/// What is known of a pass before it runs.
namespace outrigger::nn::cuda {

void CudaProgram::name_kept(const Graph& graph) {
  std::vector<MemoryUse> uses;
  for (const auto& [layer, bytes] : plan_.buffers.kept_by_owner())
    uses.push_back({graph.layers()[static_cast<size_t>(layer)].name, bytes});
  std::ranges::stable_sort(uses, std::ranges::greater(), &MemoryUse::bytes);
  kept_by_layers_ = std::make_shared<const std::vector<MemoryUse>>(std::move(uses));
}

void CudaProgram::find_untrained(const Graph& graph, const Compilation& compilation) {
  const int64_t first = graph.parameter_range(options_.segment).offset;
  for (const Parameter& parameter : graph.parameters()) {
    if (parameter.layer < options_.segment.begin || parameter.layer >= options_.segment.end)
      continue;
    // Layers that do not train at all write nothing.
    if (parameter.trainable || !compilation.trains(parameter.layer)) continue;
    untrained_.push_back({parameter.range.offset - first, parameter.range.size});
  }
}

void CudaProgram::plan_gradient_buckets(const Graph& graph, const Compilation& compilation) {
  const int first_backward = static_cast<int>(steps());
  buckets_ = plan_buckets(graph, options_.segment, [&](int layer) {
    const int moment = compilation.gradient_moment(layer);
    return moment < 0 ? -1 : moment - first_backward;
  });
}

// The input step's own backward hands the gradient out, which a recording cannot.
void CudaProgram::plan_pieces() {
  if (plan_.backward.empty()) return;
  const size_t turns = plan_.backward.size() - (options_.input_gradient ? 1 : 0);
  pieces_.push_back({.forward = true});
  Piece piece;
  for (size_t i = 0; i < turns; ++i) {
    piece.last = i + 1;
    while (piece.last_bucket < buckets_.size() &&
           buckets_[piece.last_bucket].step <= static_cast<int>(i))
      ++piece.last_bucket;
    if (piece.last_bucket == piece.first_bucket && i + 1 < turns) continue;
    pieces_.push_back(piece);
    piece = {piece.last, piece.last, piece.last_bucket, piece.last_bucket};
  }
}

void CudaProgram::find_measured(const Graph& graph) {
  const int64_t first = graph.buffer_range(options_.segment).offset;
  graph_row_ = {first, graph.buffer_count()};
  ends_graph_ = options_.segment.end == graph.size();
  for (int layer = options_.segment.begin; layer < options_.segment.end; ++layer) {
    const Range range = graph.buffer_range({layer, layer + 1});
    if (range.size == 0 || graph.layers()[static_cast<size_t>(layer)].frozen) continue;
    measured_.push_back({range.offset - first, range.size});
  }
}

}  // namespace outrigger::nn::cuda
