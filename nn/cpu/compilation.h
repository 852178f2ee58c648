#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "nn/cpu/blocks.h"
#include "nn/cpu/buffers.h"
#include "nn/cpu/element_type.h"
#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/schedule.h"
#include "nn/program.h"

namespace outrigger::nn::cpu {

/// A tensor between two layers, channels-last. Maps are in the program's precision, feature vectors
/// always float32.
struct Value {
  int64_t places = 1;  // H * W
  int64_t channels = 1;
  int64_t height = 1, width = 1;
  bool bfloat16 = false;
  bool wants_gradient = false;
  bool kept = false;            // backward reads it: it lies on the tape
  bool whole = false;           // somebody needs all samples side by side
  bool whole_gradient = false;  // the same for its gradient
  BufferId data;
  std::vector<BufferId> gradients;  // what the readers have given; their sum is the gradient

  int64_t elements() const { return places * channels; }
  int64_t bytes() const { return elements() * (bfloat16 ? 2 : 4); }
};

/// What the operations of a segment share while they are planned.
class Compilation {
 public:
  Compilation(const Graph& graph, const ProgramOptions& options, int slots);

  const Graph& graph() const { return graph_; }
  const ProgramOptions& options() const { return options_; }
  const Blocks& blocks() const { return blocks_; }
  const Kernels& kernels() const { return kernels_; }
  int slots() const { return slots_; }
  bool training() const { return options_.mode == Mode::kTraining; }
  const Layer& layer(int index) const { return graph_.layers()[static_cast<size_t>(index)]; }

  /// The output of a layer; of the one before the segment: the segment's input.
  Value& value(int layer) {
    const int place = layer - options_.segment.begin + 1;
    return values_[static_cast<size_t>(place)];
  }
  Value& input_of(int layer_index, size_t which = 0) {
    return value(layer(layer_index).inputs[which]);
  }

  BufferPlan& buffers() { return buffers_; }
  /// Gives a value its buffer, when its producer is planned.
  BufferId create(Value& value);
  /// A new buffer for a gradient of `value`, which the value gets as one more contribution.
  BufferId create_gradient(Value& value);
  /// Bytes for a layer's packed weights; 64-byte aligned. Returns their offset.
  size_t reserve_weights(size_t bytes);
  /// Scratchpad that a task of a piece needs.
  void reserve_slot(size_t bytes);

  /// Where a parameter or a norm's buffer lies within the segment's arenas.
  Range parameter(int layer_index, size_t which) const;
  bool trains(int layer_index, size_t which) const;
  /// Where the gradients lie of what trains in these layers; -1 is none.
  std::vector<Range> trained(std::initializer_list<int> layers) const;
  Range statistics(int layer_index) const;

  Schedule& forward() { return forward_; }
  Schedule& backward() { return backward_; }

  /// The gradient of `value` as one buffer, added up where several readers gave one; whole where
  /// the value asks for it. Plans a piece where needed. `layer` is for profiles.
  BufferId gradient(int layer, Value& value);

  size_t weight_bytes() const { return weight_bytes_; }
  size_t slot_bytes() const { return slot_bytes_; }

 private:
  BufferId combine(int layer, const Value& value, BufferId a, BufferId b, bool whole);

  const Graph& graph_;
  const ProgramOptions options_;
  const Blocks blocks_;
  const Kernels& kernels_;
  const int slots_;
  BufferPlan buffers_;
  Schedule forward_, backward_;
  std::vector<Value> values_;
  size_t weight_bytes_ = 0, slot_bytes_ = 0;
};

/// The least multiple of both the number of channels and 16 (kernels.h).
int64_t period_of(int64_t channels);

}  // namespace outrigger::nn::cpu
