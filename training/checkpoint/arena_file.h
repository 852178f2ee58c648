#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "nn/graph.h"

/// A whole parameter arena (momentum, former weights) as safetensors under the parameters' names.
namespace outrigger::training {

/// Writes to `path` itself and syncs. IoError.
void save_arena(const std::filesystem::path& path, const nn::Graph& graph,
                std::span<const float> arena, const std::map<std::string, std::string>& metadata);

/// Throws InvalidInput that names the file and the first tensor that is absent or of another shape.
void load_arena(const std::filesystem::path& path, const nn::Graph& graph, std::span<float> arena);

}  // namespace outrigger::training
