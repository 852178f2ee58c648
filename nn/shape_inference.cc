#include "nn/shape_inference.h"

#include <cmath>

#include "common/error.h"

namespace outrigger::nn {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

class Inference {
 public:
  Inference(const std::string& layer, const Operation& operation, const std::vector<Shape>& inputs)
      : layer_(layer), operation_(operation), inputs_(inputs) {}

  Shape operator()(const Normalize& normalize) const {
    const Shape& in = image();
    require(static_cast<int64_t>(normalize.mean.size()) == in[2] &&
                static_cast<int64_t>(normalize.deviation.size()) == in[2],
            "needs one mean and one deviation per channel");
    for (const float deviation : normalize.deviation) {
      require(std::isfinite(deviation) && deviation > 0, "needs deviations above 0");
    }
    return in;
  }

  Shape operator()(const Convolution& convolution) const {
    const Shape& in = image();
    const int64_t out = convolution.out_channels;
    require(out >= 1, "needs at least one output channel");
    require(
        convolution.groups >= 1 && in[2] % convolution.groups == 0 && out % convolution.groups == 0,
        "needs groups that divide the channels before and behind it; groups is " +
            std::to_string(convolution.groups));
    return {slide(in[0], convolution), slide(in[1], convolution), out};
  }

  Shape operator()(const BatchNorm& norm) const {
    require(norm.epsilon > 0 && norm.momentum >= 0 && norm.momentum <= 1,
            "needs epsilon above 0 and momentum in [0, 1]");
    return single();
  }
  Shape operator()(const Relu&) const { return single(); }
  Shape operator()(const Prelu&) const { return single(); }

  Shape operator()(const Add&) const {
    require(inputs_.size() == 2, "needs two inputs");
    require(inputs_[0] == inputs_[1], "needs two inputs of one shape");
    return inputs_[0];
  }

  Shape operator()(const MaxPool& pool) const { return pooled(pool); }
  Shape operator()(const AveragePool& pool) const { return pooled(pool); }
  Shape operator()(const GlobalAveragePool&) const { return {image()[2]}; }

  Shape operator()(const Linear& linear) const {
    features();
    require(linear.out_features >= 1, "needs at least one output feature");
    return {linear.out_features};
  }

  Shape operator()(const Dropout& dropout) const {
    require(dropout.probability >= 0 && dropout.probability < 1, "needs a probability in [0, 1)");
    return single();
  }
  Shape operator()(const Flatten&) const { return {element_count(single())}; }

  Shape operator()(const ArcFace& arcface) const {
    features();
    require(arcface.classes >= 2, "needs at least two classes");
    require(arcface.scale > 0 && arcface.margin >= 0 && arcface.margin < 1.57f,
            "needs a scale above 0 and a margin in [0, pi / 2)");
    return {arcface.classes};
  }

 private:
  void require(bool holds, const std::string& what) const {
    if (holds) return;
    std::string shapes;
    for (const Shape& shape : inputs_) shapes += (shapes.empty() ? "" : ", ") + to_string(shape);
    throw InvalidInput("layer \"" + layer_ + "\": " + operation_name(operation_) + " " + what +
                       "; its input is " + (shapes.empty() ? "nothing" : shapes));
  }

  const Shape& single() const {
    require(inputs_.size() == 1, "needs one input");
    return inputs_[0];
  }
  const Shape& image() const {
    require(single().size() == 3, "needs an input {height, width, channels}");
    return inputs_[0];
  }
  const Shape& features() const {
    require(single().size() == 1, "needs an input {features}");
    return inputs_[0];
  }

  // How often the window fits along one side; what is left over at the end is dropped, as PyTorch
  // does.
  template <typename Window>
  int64_t slide(int64_t size, const Window& window) const {
    require(window.kernel >= 1 && window.stride >= 1 && window.padding >= 0,
            "needs kernel and stride of at least 1 and padding of at least 0");
    const int64_t room = size + 2 * window.padding - window.kernel;
    require(room >= 0, "has a kernel of " + std::to_string(window.kernel) + " and padding of " +
                           std::to_string(window.padding) + ", for which the input is too small");
    return room / window.stride + 1;
  }

  template <typename Pool>
  Shape pooled(const Pool& pool) const {
    const Shape& in = image();
    require(2 * pool.padding <= pool.kernel, "needs padding of at most half its kernel");
    return {slide(in[0], pool), slide(in[1], pool), in[2]};
  }

  const std::string& layer_;
  const Operation& operation_;
  const std::vector<Shape>& inputs_;
};

}  // namespace

Shape infer_shape(const std::string& layer, const Operation& operation,
                  const std::vector<Shape>& inputs) {
  return std::visit(Inference(layer, operation, inputs), operation);
}

const char* operation_name(const Operation& operation) {
  return std::visit(Overloaded{
                        [](const Normalize&) { return "Normalize"; },
                        [](const Convolution&) { return "Convolution"; },
                        [](const BatchNorm&) { return "BatchNorm"; },
                        [](const Relu&) { return "Relu"; },
                        [](const Prelu&) { return "Prelu"; },
                        [](const Add&) { return "Add"; },
                        [](const MaxPool&) { return "MaxPool"; },
                        [](const AveragePool&) { return "AveragePool"; },
                        [](const GlobalAveragePool&) { return "GlobalAveragePool"; },
                        [](const Linear&) { return "Linear"; },
                        [](const Dropout&) { return "Dropout"; },
                        [](const Flatten&) { return "Flatten"; },
                        [](const ArcFace&) { return "ArcFace"; },
                    },
                    operation);
}

}  // namespace outrigger::nn
