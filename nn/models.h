#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/graph.h"

namespace outrigger::nn {

/// What turns a network's features into logits for the loss.
enum class HeadKind : uint8_t { kLinear, kArcFace, kNone };

struct ModelOptions {
  std::string name;                       // one of model_names()
  int64_t height = 112;
  int64_t width = 112;
  int64_t channels = 3;
  int64_t classes = 0;
  std::optional<int64_t> embedding;       // size of the embedding, for models that have one (ArcFace nets: default 512)
  HeadKind head = HeadKind::kLinear;      // kNone: the graph ends with the embedding (or features)
  float arcface_margin = 0.5f;
  float arcface_scale = 64.0f;
  std::optional<std::string> freeze_until;
};

/// lenet5, resnet18, resnet50 (torchvision's names), iresnet18, iresnet50, mobilefacenet (insightface's names).
std::vector<std::string> model_names();

/// Throws InvalidInput: unknown name (lists them), an input too small, an unknown layer to freeze.
Graph build_model(const ModelOptions& options);

/// Draws initial parameters (Kaiming normal, fan out, for convolutions; PyTorch's defaults elsewhere) and buffers
/// (mean 0, variance 1), keyed by (seed, parameter's name): the same for any cut and any machine.
void initialize(const Graph& graph, uint64_t seed, std::span<float> parameters, std::span<float> buffers);

}  // namespace outrigger::nn
