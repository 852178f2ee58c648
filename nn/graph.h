#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/tensor.h"

/// Networks as plain data: layers in topological order, shapes inferred, every parameter at a fixed
/// place in one flat float32 arena. Backends (nn/reference, nn/cpu, later nn/cuda) compile segments
/// of a graph into programs.
namespace outrigger::nn {

/// Pixels {H, W, C} uint8 to (x / 255 - mean) / deviation, per channel. Always layer 0, so that
/// every cut and every machine starts from the same pixels.
struct Normalize {
  std::vector<float> mean;
  std::vector<float> deviation;
};
/// Weight {out, in / groups, kernel, kernel} as PyTorch has it; bias {out} where asked for.
struct Convolution {
  int64_t out_channels = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;
};
/// Over {N, H, W} of one micro-batch (or over {N} behind a linear layer). Without `affine_scale`
/// the scale is fixed at 1 and has no parameter that trains (ArcFace embeddings' last norm); it is
/// still stored under PyTorch's name.
struct BatchNorm {
  float epsilon = 1e-5f;
  float momentum = 0.1f;
  bool train_scale = true;
};
struct Relu {};
/// One slope per channel: weight {C}.
struct Prelu {};
struct Add {};
struct MaxPool {
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
};
/// Padding counts as zeros in the mean (PyTorch's default).
struct AveragePool {
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
};
/// {H, W, C} to {C}.
struct GlobalAveragePool {};
/// Weight {out, in}, bias {out}.
struct Linear {
  int64_t out_features = 0;
  bool bias = true;
};
/// Zeroes with probability p and scales by 1 / (1 - p); a pure function of (seed, slot, layer,
/// element in C, H, W order): dropout_factors (nn/dropout.h).
struct Dropout {
  float probability = 0.5f;
};
/// {H, W, C} to {C * H * W}, in PyTorch's order: channel outermost.
struct Flatten {};
/// Cosine logits with an additive angular margin on the sample's own class (Deng et al., "ArcFace",
/// CVPR 2019): scale * cos(theta + margin) there, scale * cos(theta) elsewhere and without labels.
/// Weight {classes, in}. The exact function is add_angular_margin (nn/angular_margin.h). Always the
/// last layer.
struct ArcFace {
  int64_t classes = 0;
  float margin = 0.5f;
  float scale = 64.0f;
};

using Operation = std::variant<Normalize, Convolution, BatchNorm, Relu, Prelu, Add, MaxPool,
                               AveragePool, GlobalAveragePool, Linear, Dropout, Flatten, ArcFace>;

/// How a parameter is initialised and whether weight decay touches it by default.
enum class ParameterKind : uint8_t { kWeight, kBias, kNormScale, kNormShift, kSlope };

/// A piece of an arena, in floats.
struct Range {
  int64_t offset = 0;
  int64_t size = 0;
  int64_t end() const { return offset + size; }
};

/// One trainable tensor. Its name and shape are those of the PyTorch model of the same
/// architecture.
struct Parameter {
  std::string name;
  Shape shape;
  ParameterKind kind = ParameterKind::kWeight;
  Range range;  // in the parameter arena
  int layer = 0;
  bool trainable = true;  // false: in a frozen layer, or a norm's fixed scale
};

/// A batch norm's running averages. In the buffer arena: mean {C}, then variance {C} (unbiased, as
/// PyTorch's). In a micro-batch's statistics, laid out the same: mean {C}, then biased variance
/// {C}.
struct NormBuffer {
  std::string name;  // PyTorch's prefix: "<name>.running_mean", "<name>.running_var"
  int64_t channels = 0;
  Range range;  // 2 * channels floats in the buffer arena
  int layer = 0;
  float momentum = 0.1f;
  int64_t values_per_sample = 1;  // H * W: with m samples a mean is over m * H * W values
};

struct Layer {
  std::string name;
  Operation operation;
  std::vector<int> inputs;  // indexes of earlier layers; empty for layer 0, which reads the pixels
  Shape output;             // per sample: {H, W, C} or {F}
  std::vector<int> parameters;  // indexes into Graph::parameters()
  int buffer = -1;              // index into Graph::buffers(), for batch norms
  bool frozen = false;          // no gradient; batch norms use running averages
};

/// Layers [begin, end) of a graph. `begin` is 0 or a legal cut, `end` a legal cut or the number of
/// layers.
struct Segment {
  int begin = 0;
  int end = 0;
};

/// A place where exactly one tensor crosses from the layers before to the layers behind, and where
/// no group is split that backends run as one: none lies directly behind Normalize, before an
/// activation, or between a convolution or linear layer and its batch norm.
struct Cut {
  int layers = 0;    // how many layers lie before it; 0: the input's pixels cross
  std::string name;  // of the last layer before it; "Input" for 0
  Shape shape;       // per sample, of what crosses
};

/// Immutable once built; safe to share between threads.
class Graph {
 public:
  const std::string& name() const { return name_; }
  const Shape& input() const { return input_; }  // {H, W, C} of the pixels
  std::span<const Layer> layers() const { return layers_; }
  std::span<const Parameter> parameters() const { return parameters_; }
  std::span<const NormBuffer> buffers() const { return buffers_; }
  int size() const { return static_cast<int>(layers_.size()); }
  Segment whole() const { return {0, size()}; }

  /// Parameters and buffers lie in layer order, so a segment's are one contiguous range and a
  /// stem's a prefix.
  Range parameter_range(Segment segment) const;
  Range buffer_range(Segment segment) const;
  int64_t parameter_count() const { return parameter_range(whole()).size; }
  int64_t buffer_count() const { return buffer_range(whole()).size; }

  /// All legal cuts in order, the first being 0 ("Input"); the whole graph is none.
  std::span<const Cut> cuts() const { return cuts_; }
  /// The cut "Input", or behind the layer, or behind the last layer whose name starts with `name` +
  /// "." (so "layer1" means behind that stage). Throws InvalidInput that lists the legal names.
  const Cut& cut(const std::string& name) const;
  const Cut& cut_at(int layers) const;

  /// Layer that gives the embedding (the input of the classifier or of ArcFace), for `embed` and
  /// verification.
  int embedding_layer() const { return embedding_layer_; }
  /// Multiply-adds of one sample's forward pass through a segment.
  int64_t multiply_adds(Segment segment) const;
  /// True where every layer before `layers` is frozen.
  bool frozen_before(int layers) const;

 private:
  friend class GraphBuilder;
  std::string name_;
  Shape input_;
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_;
  std::vector<NormBuffer> buffers_;
  std::vector<Cut> cuts_;
  int embedding_layer_ = 0;
};

/// Builds a graph layer by layer, infers shapes, and refuses what does not fit with InvalidInput
/// that names the layer.
class GraphBuilder {
 public:
  GraphBuilder(std::string name, Shape input);
  /// Appends a layer and returns its index. `inputs` empty: the layer before (none for the first).
  int add(const std::string& name, Operation operation, std::vector<int> inputs = {});
  /// The layer whose output is the embedding; by default the input of the last layer with weights.
  void mark_embedding(int layer);
  /// Freezes all layers up to and including `name` (exact, or a stage prefix as in Graph::cut).
  void freeze_until(const std::string& name);
  Graph build();

 private:
  Graph graph_;
  std::optional<int> embedding_;
};

}  // namespace outrigger::nn
