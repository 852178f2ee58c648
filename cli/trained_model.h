#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nn/graph.h"
#include "training/checkpoint/model_card.h"

namespace outrigger::cli {

/// What a user may have to say about a weights file that does not say it itself (one that PyTorch
/// wrote).
struct ModelHints {
  std::optional<std::string> name;  // "resnet18"
  int64_t height = 112;
  int64_t width = 112;
  int64_t channels = 3;
  std::optional<int64_t> embedding;
};

/// A network with its weights, ready for inference.
struct TrainedModel {
  std::filesystem::path file;  // where the weights came from
  training::ModelCard card;    // head kNone where the file does not say what its head is
  nn::Graph graph;
  std::vector<float> parameters;
  std::vector<float> buffers;

  bool has_head() const { return card.model.head != nn::HeadKind::kNone; }
};

/// The weights file that `path` means: itself, or the weights in a run's output directory, a
/// directory of checkpoints (its best, else its newest), or one checkpoint. Averaged weights come
/// before the others. Throws InvalidInput that says what was looked for.
std::filesystem::path find_weights(const std::filesystem::path& path);

/// Loads what find_weights() finds. A file that was written here says itself what it is (hints may
/// not contradict it); of other files hints name the model, and only the layers up to the embedding
/// are loaded. Throws InvalidInput: no model named, a name that differs, tensors that do not fit.
TrainedModel load_trained_model(const std::filesystem::path& path, const ModelHints& hints);

}  // namespace outrigger::cli
