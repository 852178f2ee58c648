#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/tensor.h"
#include "nn/operation.h"
#include "nn/parameter.h"

/// Networks as plain data: layers in topological order, shapes inferred, every parameter at a fixed
/// place in one flat float32 arena. Backends (nn/reference, nn/cpu, later nn/cuda) compile segments
/// of a graph into programs.
namespace outrigger::nn {

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

}  // namespace outrigger::nn
