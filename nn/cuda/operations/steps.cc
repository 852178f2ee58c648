#include <variant>

#include "common/error.h"
#include "nn/cuda/operations/step.h"

namespace outrigger::nn::cuda {
namespace {

template <typename... Ts>
struct StepMaker : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
StepMaker(Ts...) -> StepMaker<Ts...>;

template <typename Op>
bool is(const Compilation& c, int layer) {
  return layer >= 0 && std::holds_alternative<Op>(c.layer(layer).operation);
}

// The ReLU that is all that reads `layer`, or -1.
int relu_behind(const Compilation& c, int layer) {
  const int reader = c.sole_reader(layer);
  return is<Relu>(c, reader) ? reader : -1;
}

// An addition right behind joins where its other input is there already, and a ReLU behind that; a
// norm without addition takes a PReLU too.
NormGroup norm_group(const Compilation& c, int norm) {
  NormGroup group{norm, -1, -1, norm};
  const int reader = c.sole_reader(norm);
  if (is<Add>(c, reader)) {
    const auto& inputs = c.layer(reader).inputs;
    const int other = inputs[0] == norm ? inputs[1] : inputs[0];
    if (other >= norm) return group;
    group.residual = other;
    group.output = reader;
    group.activation = relu_behind(c, reader);
  } else if (is<Relu>(c, reader) || is<Prelu>(c, reader)) {
    group.activation = reader;
  }
  if (group.activation >= 0) group.output = group.activation;
  return group;
}

class Planner {
 public:
  explicit Planner(const Compilation& c) : c_(c) {}

  Steps run() {
    const Segment segment = c_.options().segment;
    joined_.resize(static_cast<size_t>(segment.end));
    if (segment.begin > 0) steps_.push_back(make_input(segment.begin - 1));
    for (int i = segment.begin; i < segment.end; ++i) {
      if (!joined_[static_cast<size_t>(i)]) steps_.push_back(step(i));
    }
    steps_.push_back(make_output(segment.end - 1));
    return std::move(steps_);
  }

 private:
  void join(int layer) {
    if (layer >= 0) joined_[static_cast<size_t>(layer)] = true;
  }
  std::unique_ptr<Step> norm_step(int i) {
    const NormGroup group = norm_group(c_, i);
    join(group.activation);
    if (group.residual >= 0) join(c_.sole_reader(i));
    return make_norm(group);
  }
  std::unique_ptr<Step> convolution_step(int i) {
    const int relu = relu_behind(c_, i);
    join(relu);
    return make_convolution(i, relu >= 0 ? relu : i);
  }
  std::unique_ptr<Step> add_step(int i) {
    const int relu = relu_behind(c_, i);
    join(relu);
    return make_add(i, relu >= 0 ? relu : i);
  }
  std::unique_ptr<Step> step(int i) {
    const StepMaker make{
        [&](const Normalize&) { return make_normalize(i); },
        [&](const Convolution&) { return convolution_step(i); },
        [&](const BatchNorm&) { return norm_step(i); },
        [&](const Relu&) { return make_activation(i); },
        [&](const Prelu&) { return make_activation(i); },
        [&](const Add&) { return add_step(i); },
        [&](const MaxPool&) { return make_max_pool(i); },
        [&](const AveragePool&) { return make_average_pool(i); },
        [&](const GlobalAveragePool&) { return make_average_pool(i); },
        [&](const Linear&) { return make_linear(i); },
        [&](const Dropout&) { return make_dropout(i); },
        [&](const Flatten&) { return make_flatten(i); },
        [&](const ArcFace&) { return make_arcface(i); },
    };
    return std::visit(make, c_.layer(i).operation);
  }

  const Compilation& c_;
  Steps steps_;
  std::vector<bool> joined_;
};

}  // namespace

Steps make_steps(const Compilation& c) { return Planner(c).run(); }

}  // namespace outrigger::nn::cuda
