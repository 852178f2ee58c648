#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace outrigger::api {

// What `spec.model` and its layers say. Names of models and layers stay text here: what exists is
// nn's to say. Every struct of a spec is a plain value: default-constructed it holds the defaults,
// std::optional and empty lists are fields that the file leaves out, and the rules for each field
// are in schema/.

/// A square convolution over {N, H, W, C}. groups == its input's channels makes it depthwise.
struct ConvolutionLayer {
  int channels = 0;  // of the output
  int kernel = 0;
  int stride = 1;
  int padding = 0;
  int groups = 1;
  bool bias = false;
  bool operator==(const ConvolutionLayer&) const = default;
};

/// Batch norm over channels, as PyTorch defines epsilon and momentum (the weight of the new value).
struct BatchNormLayer {
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool operator==(const BatchNormLayer&) const = default;
};

struct ReluLayer {
  bool operator==(const ReluLayer&) const = default;
};

/// A slope per channel for what is below zero, trained.
struct PReluLayer {
  bool operator==(const PReluLayer&) const = default;
};

/// The sum of all its inputs, which have one shape.
struct AddLayer {
  bool operator==(const AddLayer&) const = default;
};

struct PoolWindow {
  int kernel = 0;
  int stride = 1;
  int padding = 0;
  bool operator==(const PoolWindow&) const = default;
};
struct MaxPoolLayer : PoolWindow {
  bool operator==(const MaxPoolLayer&) const = default;
};
struct AveragePoolLayer : PoolWindow {
  bool operator==(const AveragePoolLayer&) const = default;
};

/// The mean over height and width: {N, H, W, C} to {N, C}.
struct GlobalAveragePoolLayer {
  bool operator==(const GlobalAveragePoolLayer&) const = default;
};

struct LinearLayer {
  int features = 0;  // of the output
  bool bias = true;
  bool operator==(const LinearLayer&) const = default;
};

struct DropoutLayer {
  double rate = 0.5;
  bool operator==(const DropoutLayer&) const = default;
};

struct FlattenLayer {
  bool operator==(const FlattenLayer&) const = default;
};

using LayerKind =
    std::variant<ConvolutionLayer, BatchNormLayer, ReluLayer, PReluLayer, AddLayer, MaxPoolLayer,
                 AveragePoolLayer, GlobalAveragePoolLayer, LinearLayer, DropoutLayer, FlattenLayer>;

/// One layer of a network that the job spells out. In the file the kind is a member beside the
/// name:
/// `{name: conv1, convolution: {channels: 64, kernel: 3}}`.
struct LayerSpec {
  std::string name;
  std::vector<std::string>
      inputs;  // empty: the layer before this one; the first layer's is the image, "input"
  LayerKind kind;
  bool operator==(const LayerSpec&) const = default;
};

/// `spec.model`: a network by name, or by its layers; exactly one of the two.
struct ModelSpec {
  std::optional<std::string> name;  // lenet5, resnet18, …
  std::vector<LayerSpec> layers;    // in order; each uses only layers before it
  std::optional<int> embedding;     // features before the classifier; absent: the model's own
  std::optional<std::string>
      weights;                // a safetensors file to start from; absent: random by the seed
  bool replace_head = false;  // with weights: the classifier starts anew
  std::optional<std::string> freeze_until;  // layers up to and with this one keep their weights
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace outrigger::api
