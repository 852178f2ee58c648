#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "nn/graph.h"

/// A graph's weights as safetensors under PyTorch's names: what PyTorch's own model of that
/// architecture loads with strict=True, and back. Parameters are F32; each batch norm has
/// running_mean, running_var (F32) and num_batches_tracked (I64).
namespace outrigger::nn {

struct SavedWeights {
  std::span<const float> parameters;  // whole model
  std::span<const float> buffers;     // whole model
  int64_t batches_tracked = 0;        // micro-batches that went into the running averages
};

/// Writes the layers of a segment: the whole graph, or backbone() for what insightface calls the
/// backbone. Writes to `path` itself (see SafetensorsWriter) and syncs. `metadata` goes into the
/// file beside {"format": "pt"}. IoError.
void save_weights(const std::filesystem::path& path, const Graph& graph, Segment segment,
                  const SavedWeights& weights,
                  const std::map<std::string, std::string>& metadata = {});

/// The layers up to and including the embedding; what is behind them is the head.
Segment backbone(const Graph& graph);

struct LoadWeightsOptions {
  /// Leaves the head as it is in memory, whatever the file has for it, of whatever shape.
  bool replace_head = false;
};

struct LoadedWeights {
  std::vector<std::string>
      skipped;                  // tensors of the file that belong to a head and were passed over
  int64_t batches_tracked = 0;  // the largest num_batches_tracked of the file; 0 without
};

/// Fills whole-model arenas from a file: F32, BF16, F16 or F64. Throws InvalidInput that names the
/// file and: every tensor that is missing or that the graph does not have (the first ten of each),
/// or one of another shape, with both shapes, or one that holds a NaN or an infinity.
/// num_batches_tracked may be missing. On an error the arenas' content is unspecified.
LoadedWeights load_weights(const std::filesystem::path& path, const Graph& graph,
                           const LoadWeightsOptions& options, std::span<float> parameters,
                           std::span<float> buffers);

}  // namespace outrigger::nn
