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
  std::string name;  // one of model_names()
  int64_t height = 112;
  int64_t width = 112;
  int64_t channels = 3;
  int64_t classes = 0;
  std::optional<int64_t>
      embedding;  // size of the embedding, for models that have one (ArcFace nets: default 512)
  HeadKind head = HeadKind::kLinear;  // kNone: the graph ends with the embedding (or features)
  float arcface_margin = 0.5f;
  float arcface_scale = 64.0f;
  float dropout = 0.0f;  // before the last linear layer (iresnet: before the embedding's); 0: none
  std::optional<std::string> freeze_until;
};

/// lenet5 (LeCun et al. 1998, with ReLU and max pooling as is usual today), resnet18, resnet50 (He
/// et al., CVPR 2016; torchvision's names), iresnet18, iresnet50, mobilefacenet (insightface's
/// arcface_torch and its names).
std::vector<std::string> model_names();

/// Layers have the names of PyTorch's modules; what is none there (an addition, a ReLU used twice)
/// has a name of its own. The head is the model's own last layer where it has one (torchvision's
/// "fc", lenet5's "fc3"), else, and for ArcFace, a layer "head" behind the embedding. Pixels are
/// normalised with ImageNet's means and deviations for resnet with three channels, else to [-1, 1].
/// Throws InvalidInput: unknown name (lists them), an input too small, fewer than two classes with
/// a head, an embedding for a model that has none of a chosen size, an unknown layer to freeze.
Graph build_model(const ModelOptions& options);

/// Draws initial parameters (Kaiming normal, fan out, for convolutions; PyTorch's defaults
/// elsewhere) and buffers (mean 0, variance 1), keyed by (seed, parameter's name): the same for any
/// cut and any machine.
void initialize(const Graph& graph, uint64_t seed, std::span<float> parameters,
                std::span<float> buffers);
/// Those of a segment, whose ranges the arenas cover.
void initialize(const Graph& graph, Segment segment, uint64_t seed, std::span<float> parameters,
                std::span<float> buffers);

}  // namespace outrigger::nn
