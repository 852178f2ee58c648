#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn/cuda/arena_plan.h"
#include "nn/cuda/engine.h"
#include "nn/graph.h"
#include "nn/program.h"

namespace outrigger::nn::cuda {

/// {H, W, C}; a feature vector is {1, 1, F}.
struct Extent {
  int64_t height = 1, width = 1, channels = 1;
  int64_t area() const { return height * width; }
  int64_t size() const { return area() * channels; }
};

/// A piece of memory that a program plans.
struct BufferId {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
};

/// What crosses between layers: the segment's input, or a layer's output. Maps have the precision's
/// type, feature vectors are float32 always.
struct Value {
  Extent extent;
  Stored type = Stored::kFloat32;
  bool wants_gradient = false;
  BufferId data;
  BufferId gradient;  // set by the first who writes it
  BufferId sums;      // {2, C}, of its columns and their squares, where who wrote it has them
  bool kept = false;  // whoever computes it again writes where it lies
};

/// Where a gradient goes: written by the first, added to by the others.
struct GradientTarget {
  BufferId buffer;
  bool add = false;
};

/// When and where buffers are needed. Forward step i runs at moment i, the turns of backward
/// follow. What is needed on both sides lies on the tape, one part a micro-batch; all else shares a
/// scratch arena.
class BufferPlan {
 public:
  /// `owner`: whose results it has.
  BufferId add(size_t bytes, int owner = -1);
  void use(BufferId id, int moment);
  /// Places everything; `last_forward`: the moment of the last forward step. What is created at
  /// `not_kept_from` and later is in the scratch arena, though backward needs it too: it is there
  /// until the next forward pass.
  void finish(int last_forward, int not_kept_from);
  void finish(int last_forward) { finish(last_forward, last_forward + 1); }

  /// Of what backward needs of the forward pass, wherever it lies: each owner's bytes, by owner.
  std::map<int, int64_t> kept_by_owner() const;
  size_t tape_bytes() const { return tape_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  /// Aborts where the buffer is not needed at `moment` by plan: somebody else's may lie there.
  std::byte* address(BufferId id, int moment, std::byte* tape, std::byte* scratch) const;

 private:
  struct Buffer {
    ArenaRequest request{0, -1, -1};
    int owner = -1;
    bool on_tape = false;
    size_t offset = 0;
  };
  std::vector<Buffer> buffers_;
  int last_forward_ = -1;
  size_t tape_bytes_ = 0, scratch_bytes_ = 0;
};

/// A loss on the device: the end of the graph computes it and its gradient, instead of leaving the
/// logits to the host.
struct LossPass {
  float smoothing = 0;
  float* results = nullptr;  // {samples, 2}, as Kernels::softmax_loss
};

/// One forward or backward in progress: where everything lies.
struct Run {
  Engine* engine = nullptr;
  const BufferPlan* plan = nullptr;
  int moment = 0;
  std::byte* tape = nullptr;
  std::byte* scratch = nullptr;
  const std::byte* weights = nullptr;
  float* statistics = nullptr;  // the segment's, on the device
  float* gradients = nullptr;   // likewise
  const uint64_t* slots = nullptr;
  const int32_t* labels = nullptr;   // null: none
  const std::byte* input = nullptr;  // on the device, of the whole batch, as ForwardInput::input
  int64_t count = 0;                 // samples present
  const ForwardOutput* out = nullptr;
  const LossPass* loss = nullptr;  // null: the host has it
  float loss_scale = 1;            // of gradients on the device, not of those that cross its border
  const std::byte* output_gradient = nullptr;  // on the host, like what follows
  std::byte* input_gradient = nullptr;
  std::byte* pinned_gradient = nullptr;  // instead: queued only

  const Kernels& kernels() const { return engine->kernels(); }
  template <typename T = std::byte>
  T* at(BufferId id) const {
    return reinterpret_cast<T*>(plan->address(id, moment, tape, scratch));
  }
  template <typename T = float>
  const T* weight(size_t offset) const {
    return reinterpret_cast<const T*>(weights + offset);
  }
};

/// Gathers what a program needs while its steps are planned, one after the other.
class Compilation {
 public:
  Compilation(const Graph& graph, const ProgramOptions& options, Engine& engine);

  const Graph& graph() const { return graph_; }
  const ProgramOptions& options() const { return options_; }
  Engine& engine() const { return engine_; }
  const Layer& layer(int i) const { return graph_.layers()[static_cast<size_t>(i)]; }
  bool training() const { return options_.mode == Mode::kTraining; }
  Stored map_type() const;
  /// Of what enters and leaves the segment at a cut.
  Stored crossing_type() const {
    return map_type() == Stored::kFloat16 ? Stored::kFloat32 : map_type();
  }
  /// The segment's input where `layer` lies before it.
  Value& value(int layer) {
    return values_[static_cast<size_t>(layer < begin_ ? 0 : layer - begin_ + 1)];
  }
  const Value& value(int layer) const { return const_cast<Compilation*>(this)->value(layer); }
  /// The only layer of the segment that reads this one, or -1; what leaves the segment has none.
  int sole_reader(int layer) const;

  uint32_t samples() const { return static_cast<uint32_t>(options_.batch); }
  /// Rows of a value: places of its maps, or samples.
  Matrix matrix(const Value& value) const;
  size_t bytes(const Value& value) const;

  BufferId create(size_t bytes);
  /// The memory of a layer's output, needed from now; of what is kept, where it lies already.
  BufferId create(Value& value);
  void use(BufferId id);
  /// Where the step writes the gradient of an input, needed from now.
  GradientTarget gradient(Value& value);
  void next_moment() { ++moment_; }
  int moment() const { return moment_; }
  BufferPlan& buffers() { return buffers_; }

  /// From now on the program's step `i` is planned, whose output is `layer`'s. One that is planned
  /// again, to run its forward once more, reserves what it has.
  void begin_step(size_t i, int layer);
  /// Room in a copy of the weights; the parameters as they come, and running averages, have theirs.
  size_t reserve(size_t bytes);
  size_t weight_bytes() const { return weight_bytes_; }
  /// Of the layer's first parameter in a copy of the weights, in bytes.
  size_t parameters_at(int layer) const;
  size_t averages_at(int layer) const;
  /// The same in the segment's gradients and statistics, in floats.
  int64_t parameter_offset(int layer) const;
  /// The same, for a step that writes the layer's gradients at this moment.
  int64_t gradient_offset(int layer);
  /// When that is; -1: never.
  int gradient_moment(int layer) const;
  int64_t statistics_offset(int layer) const;
  /// Bytes of a copy's head: the parameters, then the running averages.
  size_t parameter_bytes() const;
  size_t average_bytes() const;
  bool trains(int layer) const;

 private:
  void describe_values();

  const Graph& graph_;
  const ProgramOptions& options_;
  Engine& engine_;
  const int begin_;
  std::vector<Value> values_;
  BufferPlan buffers_;
  int moment_ = 0;
  size_t weight_bytes_ = 0;
  std::vector<std::vector<size_t>> reserved_;  // by steps
  size_t step_ = 0, next_reserved_ = 0;
  int step_layer_ = -1;
  std::vector<int> gradient_moments_;  // of the segment's layers
};

}  // namespace outrigger::nn::cuda
