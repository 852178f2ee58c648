#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "common/clock.h"
#include "common/tensor.h"
#include "nn/graph.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/program.h"

/// Training with weights, momentum and gradients in the memory of a device of its own: the host
/// sees losses, statistics of batch norms, what crosses a cut, and the weights when it asks for
/// them.
namespace outrigger::nn {

struct ResidentOptions {
  SgdOptions optimizer;
  std::optional<float> average_decay;  // of averaged weights; absent: none are kept
  float label_smoothing = 0;
};

/// Whole-model arenas of the host, parameter_count() floats each.
struct ResidentArrays {
  std::span<float> parameters;
  std::span<float> momentum;
  std::span<float> averaged;  // empty where none are kept
};

/// A program with its weights and a tape, of one micro-batch.
struct ResidentPass {
  const Program& program;
  const Weights& weights;
  Tape& tape;
  /// The step's last on this rank, of the whole graph: its gradients are final as they come, and
  /// may leave for the other ranks while the rest is computed. Each rank says so by its own plan.
  bool last = false;
};

/// Where a pass leaves what the host wants of it; must live until it is collected.
struct ResidentTargets {
  /// {groups, buffer_count()} of the whole graph: the segment's columns are written, but for frozen
  /// norms'.
  std::span<float> statistics;
  TensorView input_gradient;  // as BackwardOutput's; data null: nobody wants it
};

/// The ranks of one job, each with a device.
struct RankGroup {
  int rank = 0;
  int size = 1;
  /// A rank that does not come for so long is lost.
  Duration limit{0};
  bool bfloat16 = false;  // sums travel, and are added, as bfloat16; all ranks say the same
  /// Replaces the bytes by rank 0's; every rank calls it.
  std::function<void(std::span<std::byte>)> from_first;
};

/// How a step ends: gradient = sum * mean, then shrunk where its norm passes `clip_norm`.
struct ResidentUpdate {
  float learning_rate = 0;
  float mean = 1;
  std::optional<double> clip_norm;
  /// Sum of squares of mean gradients that are not here; they are part of the norm.
  double other_squares = 0;
};

struct ResidentUpdated {
  double gradient_norm = 0;    // of the mean, before clipping; not finite: nothing was updated
  bool weights_finite = true;  // behind the update
};

/// Seconds that a device was at something.
struct ResidentTimes {
  double input = 0;  // it stood still for a pass's input, which was on its way
  double forward = 0;
  double backward = 0;  // with the loss
  double optimizer = 0;
};

/// The arrays of one run on one device. Programs, weights and tapes are those of the backend that
/// made this. One thread. Throws what the backend's programs throw.
class Resident {
 public:
  virtual ~Resident() = default;

  /// From the host: at a start or a resume.
  virtual void put(const ResidentArrays& host) = 0;
  /// To the host; empty spans are passed over.
  virtual void fetch(const ResidentArrays& host) = 0;
  /// Of the parameters these alone, which fill `to`.
  virtual void fetch_parameters(Range range, std::span<float> to) = 0;
  /// A program's copy of the parameters that are here; running averages of its segment from the
  /// host.
  virtual void load(const Program& program, Weights& weights, std::span<const float> buffers) = 0;

  virtual void clear_gradients() = 0;
  /// Brings the input of the next train() of this pass to the device, beside what that does: parts
  /// that fill it one behind another, each with a label a sample, one of the classes. What has an
  /// owner is held until it was read, the rest is copied. At most one may be staged beyond the pass
  /// that was queued last.
  virtual void stage(const ResidentPass& pass, std::span<const ForwardInput> parts) = 0;
  /// Queues forward, loss and backward of a segment that ends the graph, on what was staged; the
  /// gradients are added to the sums. Returns before it is done. `loss_scale`: a power of two that
  /// gradients are multiplied by on the way, so that float16 holds them; sums and the input's
  /// gradient are without it.
  virtual void train(const ResidentPass& pass, const ResidentTargets& targets,
                     float loss_scale) = 0;
  /// Waits for the pass that was queued first of those not collected, and fills its targets.
  virtual LossResult collect() = 0;
  /// Backward of a segment whose loss is not computed here, after its program's forward.
  virtual void backward(const ResidentPass& pass, const ConstTensorView& output_gradient,
                        float loss_scale) = 0;
  /// Adds what was computed elsewhere.
  virtual void add_gradients(Range range, std::span<const float> gradients) = 0;
  /// Meets the other ranks, between devices. False, on all ranks alike, where that cannot be: then
  /// the host sums. Throws what the backend has for a rank that is lost.
  virtual bool join(const RankGroup& ranks) = 0;
  /// Replaces the sums by those over all ranks that joined.
  virtual void sum_over_ranks() = 0;
  /// The sums to the host and back, for what only a host can do with them.
  virtual void fetch_gradients(std::span<float> gradients) = 0;
  virtual void put_gradients(std::span<const float> gradients) = 0;

  /// Clips, steps the optimizer over all parameters at once and averages. As sgd_step and
  /// average_weights; untouched where the gradient's norm is not finite.
  virtual ResidentUpdated update(const ResidentUpdate& update) = 0;
  /// Of what was collected and updated since the last call.
  virtual ResidentTimes take_times() = 0;
};

}  // namespace outrigger::nn
