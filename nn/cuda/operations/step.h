#pragma once

#include <memory>
#include <vector>

#include "nn/cuda/compilation.h"

/// One step of a program: a layer, or several that run as one. Planned once, in order for forward
/// and in reverse for backward; then only run.
namespace outrigger::nn::cuda {

class Step {
 public:
  virtual ~Step() = default;
  /// Creates its outputs' memory and says what it uses at this moment.
  virtual void plan_forward(Compilation& c) = 0;
  /// Likewise for backward; called only where a gradient of its output is wanted.
  virtual void plan_backward(Compilation& c) = 0;
  /// Repacks what it needs in a copy of the weights that has the parameters already.
  virtual void load(Engine& /*engine*/, std::byte* /*weights*/) const {}
  virtual void forward(const Run& run) const = 0;
  virtual void backward(const Run& run) const = 0;
  /// The layer whose output is the step's.
  virtual int output() const = 0;
};

using Steps = std::vector<std::unique_ptr<Step>>;

/// The steps of a segment, with what is fused joined.
Steps make_steps(const Compilation& c);

/// What comes from the host and goes to it.
std::unique_ptr<Step> make_input(int layer);
std::unique_ptr<Step> make_output(int layer);

std::unique_ptr<Step> make_normalize(int layer);
/// A convolution, and where `output` is another layer the ReLU behind it.
std::unique_ptr<Step> make_convolution(int layer, int output);
/// A batch norm with what follows it: `residual` the other input of the addition behind it (or -1),
/// `activation` the ReLU or PReLU behind that (or -1), `output` the last of them.
struct NormGroup {
  int norm = 0;
  int residual = -1;
  int activation = -1;
  int output = 0;
};
std::unique_ptr<Step> make_norm(const NormGroup& group);
std::unique_ptr<Step> make_activation(int layer);
/// An addition, and where `output` is another layer the ReLU behind it.
std::unique_ptr<Step> make_add(int layer, int output);
std::unique_ptr<Step> make_max_pool(int layer);
std::unique_ptr<Step> make_average_pool(int layer);
std::unique_ptr<Step> make_dropout(int layer);
std::unique_ptr<Step> make_flatten(int layer);
std::unique_ptr<Step> make_linear(int layer);
std::unique_ptr<Step> make_arcface(int layer);

/// A value's memory as a kernel sees it.
inline Array array(const Run& run, const Value& value, BufferId id) {
  return {value.type, id ? run.at<void>(id) : nullptr};
}

}  // namespace outrigger::nn::cuda
