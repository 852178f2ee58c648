#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "nn/cpu/compilation.h"

namespace outrigger::nn::cpu {

/// The segment's parameters and running averages, to be packed.
struct LoadArguments {
  std::byte* weights = nullptr;
  std::span<const float> parameters;
  std::span<const float> buffers;
};

/// One layer, or a group that runs as one, while a program is compiled and afterwards: its pieces
/// of work point to it, so it lives as long as the program. Immutable once planned.
///
/// Calls come in this order: announce() of all, plan_forward() of all in graph order,
/// plan_backward() of those whose output wants a gradient, in reverse order.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Says of its values which backward reads and which must be whole.
  virtual void announce(Compilation&) {}
  /// Creates its output and adds its pieces.
  virtual void plan_forward(Compilation&) = 0;
  /// Adds its pieces; gives its inputs that want one a gradient.
  virtual void plan_backward(Compilation&) {}
  virtual void load(const LoadArguments&) const {}
  /// The layer whose output this computes.
  virtual int output() const = 0;
};

/// Layers that run as one: a norm or convolution, perhaps an addition, perhaps an activation. -1:
/// absent.
struct Group {
  int main = -1;       // its first layer
  int add = -1;        // Add whose input `add_input` is not the main's output
  int add_input = -1;  // a layer
  int activation = -1;
  int output() const { return activation >= 0 ? activation : add >= 0 ? add : main; }
};

std::unique_ptr<Operation> make_convolution(const Group& group);
std::unique_ptr<Operation> make_norm(const Group& group);
std::unique_ptr<Operation> make_normalize(int layer);
std::unique_ptr<Operation> make_relu(int layer);
std::unique_ptr<Operation> make_prelu(int layer);
std::unique_ptr<Operation> make_add(int layer);
std::unique_ptr<Operation> make_max_pool(int layer);
std::unique_ptr<Operation> make_average_pool(int layer);
std::unique_ptr<Operation> make_global_average_pool(int layer);
std::unique_ptr<Operation> make_linear(int layer);
std::unique_ptr<Operation> make_dropout(int layer);
std::unique_ptr<Operation> make_flatten(int layer);
std::unique_ptr<Operation> make_arcface(int layer);

/// Copies the segment's input in, and its gradient out; for segments that do not begin with pixels.
std::unique_ptr<Operation> make_input(int layer);
/// Copies the last layer's output out, and its gradient in.
std::unique_ptr<Operation> make_output(int layer);

/// The operations of a segment in the order in which they run.
std::vector<std::unique_ptr<Operation>> make_operations(Compilation& compilation);

}  // namespace outrigger::nn::cpu
