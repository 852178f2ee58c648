#include "nn/reference/layer.h"

#include "common/error.h"

namespace outrigger::nn::reference {
namespace {

class Factory {
 public:
  explicit Factory(const Place& place) : place_(place) {}

  using Result = std::unique_ptr<LayerCode>;
  Result operator()(const Normalize&) const { impossible("Normalize is no layer with a gradient"); }
  Result operator()(const Convolution& operation) const {
    return make_convolution(place_, operation);
  }
  Result operator()(const BatchNorm& operation) const { return make_batch_norm(place_, operation); }
  Result operator()(const Relu&) const { return make_relu(place_); }
  Result operator()(const Prelu&) const { return make_prelu(place_); }
  Result operator()(const Add&) const { return make_add(); }
  Result operator()(const MaxPool& operation) const { return make_max_pool(place_, operation); }
  Result operator()(const AveragePool& operation) const {
    return make_average_pool(place_, operation);
  }
  Result operator()(const GlobalAveragePool&) const { return make_global_average_pool(place_); }
  Result operator()(const Linear& operation) const { return make_linear(place_, operation); }
  Result operator()(const Dropout& operation) const { return make_dropout(place_, operation); }
  Result operator()(const Flatten&) const { return make_flatten(place_); }
  Result operator()(const ArcFace& operation) const { return make_arcface(place_, operation); }

 private:
  const Place& place_;
};

}  // namespace

Extent to_extent(const Shape& shape) {
  if (shape.size() == 1) return {1, 1, shape[0]};
  return {shape[0], shape[1], shape[2]};
}

std::unique_ptr<LayerCode> make_layer(const Place& place, const Operation& operation) {
  return std::visit(Factory(place), operation);
}

void normalize(const Normalize& operation, std::span<const uint8_t> pixels,
               std::span<float> output) {
  const size_t channels = operation.mean.size();
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t c = i % channels;
    output[i] =
        (static_cast<float>(pixels[i]) / 255.0f - operation.mean[c]) / operation.deviation[c];
  }
}

}  // namespace outrigger::nn::reference
