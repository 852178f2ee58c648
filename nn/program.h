#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/layer_seconds.h"
#include "common/memory_source.h"
#include "common/tensor.h"
#include "common/thread_pool.h"
#include "nn/graph.h"

namespace outrigger::nn {

/// kFloat16: on devices that compute in it only; what crosses a cut is float32 then.
enum class Precision : uint8_t { kFloat32, kBFloat16, kFloat16 };
enum class Mode : uint8_t { kTraining, kInference };

/// Memory that programs of one backend use in turn: their work space, and what their one tape
/// keeps. A forward pass of one ends what another's has kept. One thread at a time.
class WorkSpace {
 public:
  virtual ~WorkSpace() = default;
  virtual size_t bytes() const = 0;
};

/// What a program takes, in bytes; zeros where its backend does not know.
struct ProgramMemory {
  size_t kept = 0;        // of a micro-batch, from its forward to its backward
  size_t weights = 0;     // one packed copy
  size_t work_space = 0;  // that all micro-batches share
};

struct ProgramOptions {
  Segment segment;
  int64_t batch = 1;  // samples of one pass
  Precision precision = Precision::kFloat32;
  Mode mode = Mode::kTraining;
  bool input_gradient = false;  // whether backward also gives the gradient of the segment's input
  uint64_t seed = 0;            // the job's; keys dropout
  std::shared_ptr<WorkSpace> work_space = nullptr;  // Backend::make_work_space; null: of its own
  /// Of batch norm in training, of batch / groups samples each: micro-batches that run as one, on
  /// devices that can.
  int64_t groups = 1;
  /// Whether every so many passes are timed layer by layer (Program::take_layer_seconds).
  bool time_layers = false;
};

/// Aborts unless a program of the graph can have these options. For backends.
void check_options(const Graph& graph, const ProgramOptions& options);

/// Element type and full shape, {m, H, W, C} or {m, F}, of what enters or leaves a program.
struct TensorSpec {
  ElementType type = ElementType::kFloat32;
  Shape shape;
};

/// A program's copy of its segment's weights, in the backend's own layouts. Made by the program
/// that uses it. One program may have several (staleness keeps versions). Read-only while a forward
/// or backward uses it.
class Weights {
 public:
  virtual ~Weights() = default;
};

/// What backward needs from forward, for one micro-batch. A program may have many in flight; each
/// is reused for one micro-batch after another and allocates nothing after the first.
class Tape {
 public:
  virtual ~Tape() = default;
};

struct ForwardInput {
  ConstTensorView input;            // input_spec(); in inference the first `count` samples count
  int64_t count = 0;                // samples present: m in training, 1..m in inference
  std::span<const uint64_t> slots;  // one per sample; the key of dropout. Unused in inference
  std::span<const int32_t> labels;  // one per sample, for ArcFace in training; else may be empty
  /// Keeps the elements of `input` as they are for as long as it is held: a device may read them
  /// later. Null: they are the caller's, until the call returns.
  std::shared_ptr<const void> owner = nullptr;
  /// Empty; else `input` holds kInt8 or kUint8 instead, to be multiplied by these, one a channel:
  /// activations, staged by backends that unpack them.
  std::span<const float> scales = {};
};

struct ForwardOutput {
  TensorView output;            // output_spec()
  std::span<float> statistics;  // {groups, buffer_range(segment).size}, written in training:
                                // NormBuffer's layout; frozen norms leave theirs untouched
};

struct BackwardOutput {
  TensorView input_gradient;  // as input_spec(); ignored without ProgramOptions::input_gradient
  std::span<float>
      gradients;  // parameter_range(segment).size floats, overwritten: the SUM over samples of
                  // d loss / d parameter, PyTorch's layouts, 0 for what does not train
  /// Told on the calling thread while the pass runs: `gradients` are final from `first`, in floats,
  /// to their end. `first` falls from call to call. It must not use programs of this work space,
  /// and while it runs the pass stands still. Backends need not call it. Null: nobody is told.
  std::function<void(int64_t first)> ready = nullptr;
};

/// A segment compiled for one batch size and precision: primitives, layouts and work space planned
/// once; forward and backward allocate nothing. Immutable: may be used from several threads with
/// different tapes (the thread pool serialises them). The same inputs give bitwise the same outputs
/// for any number of threads, and a segment run as two programs at a legal cut gives bitwise what
/// one program gives (float32).
class Program {
 public:
  virtual ~Program() = default;
  /// uint8 {m, H, W, C} at cut 0, else channels-last {m, H, W, C} or {m, F} in the precision's
  /// type.
  virtual TensorSpec input_spec() const = 0;
  /// Like input_spec; always float32 where the segment ends the graph (logits or embeddings).
  virtual TensorSpec output_spec() const = 0;
  virtual ProgramMemory memory() const { return {}; }
  /// By layer of the segment, the mean of the passes that were timed since the last call; 0 where
  /// there was none of that kind, and empty where there was none at all, as from programs that do
  /// not tell.
  virtual std::vector<LayerSeconds> take_layer_seconds() const { return {}; }
  virtual std::unique_ptr<Weights> new_weights() const = 0;
  virtual std::unique_ptr<Tape> new_tape() const = 0;
  /// The same in the memory of a tape of any program of this backend that nobody needs any more, as
  /// far as that goes: to use memory for the first time takes long. Null: new_tape().
  virtual std::unique_ptr<Tape> new_tape_in(std::unique_ptr<Tape>) const { return new_tape(); }
  /// Uses the memory of a new tape for the first time, so that its first pass need not.
  virtual void use_memory_of(Tape&) const {}
  /// Repacks the segment's parameters (exactly parameter_range(segment)) and running averages
  /// (buffer_range).
  virtual void load(Weights& weights, std::span<const float> parameters,
                    std::span<const float> buffers) const = 0;
  virtual void forward(const Weights& weights, Tape& tape, const ForwardInput& in,
                       const ForwardOutput& out) const = 0;
  /// `output_gradient` has output_spec(). Only in training mode, after forward with the same tape
  /// and weights.
  virtual void backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                        const BackwardOutput& out) const = 0;
};

class Resident;
struct ResidentOptions;

/// Compiles programs. Thread-safe. `threads` and the graph must outlive the programs.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                           ThreadPool& threads) const = 0;
  /// For programs that are never in use at once; null where each has memory of its own.
  virtual std::shared_ptr<WorkSpace> make_work_space() const { return nullptr; }
  /// Memory of the host out of which inputs with an owner reach the device without another copy;
  /// null where the device is the host. May outlive the backend.
  virtual std::shared_ptr<MemorySource> input_memory() const { return nullptr; }
  /// Whether its residents take inputs with scales. They compute with what the host would unpack
  /// them to, bit for bit.
  virtual bool unpacks_int8() const { return false; }
  /// Keeps a run's arrays on the backend's own device (nn/resident.h); null where that is the host.
  /// The graph must outlive it.
  virtual std::unique_ptr<Resident> make_resident(const Graph& graph,
                                                  const ResidentOptions& options) const;
};

}  // namespace outrigger::nn
