#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/graph.h"

/// One object a layer: forward and backward as plain loops. All values are float32 {n, H, W, C} or
/// {n, F}.
namespace outrigger::nn::reference {

/// {H, W, C}; a feature vector is {1, 1, F}.
struct Extent {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;
  int64_t area() const { return height * width; }
  int64_t size() const { return area() * channels; }
};
Extent to_extent(const Shape& shape);

/// Where a layer stands, fixed when a program is compiled.
struct Place {
  Extent in;
  Extent out;
  int index = 0;                  // in the graph
  uint64_t seed = 0;              // the job's; keys dropout
  bool training = false;          // dropout drops
  bool batch_statistics = false;  // batch norm measures its batch; else running averages
};

/// One micro-batch.
struct Run {
  int64_t samples = 0;
  std::span<const uint64_t> slots;
  std::span<const int32_t> labels;
};

struct Forward {
  std::array<std::span<const float>, 2> inputs;
  std::span<const float> parameters;  // the layer's, as they lie in the arena
  std::span<const float> averages;    // a batch norm's running mean and variance
  std::span<float> output;
  std::span<float> statistics;  // a batch norm's, written where it measures
  std::span<float> saved;       // Layer::saved_floats(), kept for backward
  std::span<double> scratch;    // Layer::scratch_doubles()
};

struct Backward {
  std::array<std::span<const float>, 2> inputs;
  std::span<const float> parameters;
  std::span<const float> saved;
  std::span<const float> output_gradient;
  std::array<std::span<float>, 2> input_gradients;  // added to; empty where nobody wants it
  std::span<float> parameter_gradients;             // written
  std::span<double> scratch;
};

/// Immutable, so one serves many threads.
class LayerCode {
 public:
  virtual ~LayerCode() = default;
  virtual int64_t saved_floats(int64_t /*samples*/) const { return 0; }
  virtual int64_t scratch_doubles() const { return 0; }
  virtual void forward(const Run& run, const Forward& values) const = 0;
  virtual void backward(const Run& run, const Backward& values) const = 0;
};

/// For every operation but Normalize, which alone reads pixels and has no gradient: see
/// normalize().
std::unique_ptr<LayerCode> make_layer(const Place& place, const Operation& operation);

void normalize(const Normalize& operation, std::span<const uint8_t> pixels,
               std::span<float> output);

std::unique_ptr<LayerCode> make_convolution(const Place& place, const Convolution& operation);
std::unique_ptr<LayerCode> make_batch_norm(const Place& place, const BatchNorm& operation);
std::unique_ptr<LayerCode> make_relu(const Place& place);
std::unique_ptr<LayerCode> make_prelu(const Place& place);
std::unique_ptr<LayerCode> make_add();
std::unique_ptr<LayerCode> make_dropout(const Place& place, const Dropout& operation);
std::unique_ptr<LayerCode> make_flatten(const Place& place);
std::unique_ptr<LayerCode> make_max_pool(const Place& place, const MaxPool& operation);
std::unique_ptr<LayerCode> make_average_pool(const Place& place, const AveragePool& operation);
std::unique_ptr<LayerCode> make_global_average_pool(const Place& place);
std::unique_ptr<LayerCode> make_linear(const Place& place, const Linear& operation);
std::unique_ptr<LayerCode> make_arcface(const Place& place, const ArcFace& operation);

}  // namespace outrigger::nn::reference
