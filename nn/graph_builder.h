#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/tensor.h"
#include "nn/graph.h"

namespace outrigger::nn {

/// Builds a graph layer by layer, infers shapes, and refuses what does not fit with InvalidInput
/// that names the layer.
class GraphBuilder {
 public:
  GraphBuilder(std::string name, Shape input);
  /// Appends a layer and returns its index. `inputs` empty: the layer before (none for the first).
  int add(const std::string& name, Operation operation, std::vector<int> inputs = {});
  /// The layer whose output is the embedding; by default the input of the last layer with weights,
  /// or of the group that it belongs to.
  void mark_embedding(int layer);
  /// Freezes all layers up to and including `name` (exact, or a stage prefix as in Graph::cut).
  /// Refuses one behind which nothing is left to train.
  void freeze_until(const std::string& name);
  /// Freezes the first `count` layers, whatever is left.
  void freeze_first(int count);
  Graph build();

 private:
  void check_leaves_something(int last, const std::string& name) const;

  Graph graph_;
  std::optional<int> embedding_;
};

/// The same network without its last layer: layers, parameters and buffers keep their places, since
/// those of the last one are the ends of their arenas. Its output is the embedding.
Graph without_last_layer(const Graph& graph);

}  // namespace outrigger::nn
