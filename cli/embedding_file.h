#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace outrigger::cli {

/// Embeddings of images, a row each.
struct EmbeddingTable {
  std::span<const float> values;  // {paths.size(), features}
  int64_t features = 0;
  std::vector<std::string> paths;
};

/// One JSON object a line: {"path": "a.jpg", "embedding": [0.1, …]}; every number reads back as the
/// same float.
void write_json_lines(const EmbeddingTable& table, std::ostream& out);

/// Writes to a file of the kind its extension says:
///   .safetensors  tensor "embeddings" {N, F} F32, metadata "paths" (a JSON array)
///   .npy          {N, F} float32, and the paths beside it, one a line, in <file>.paths
///   .jsonl        as write_json_lines
/// Throws InvalidInput for another extension, IoError.
void write_embeddings(const EmbeddingTable& table, const std::filesystem::path& file);

/// Throws InvalidInput unless write_embeddings() knows the extension, and IoError where there is no
/// such folder; so that a mistake shows before the work is done.
void check_embedding_file(const std::filesystem::path& file);

}  // namespace outrigger::cli
