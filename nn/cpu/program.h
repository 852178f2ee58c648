#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "common/large_memory.h"
#include "common/thread_pool.h"
#include "nn/cpu/operations/operation.h"
#include "nn/cpu/run.h"
#include "nn/program.h"

namespace outrigger::nn::cpu {

/// Of one program or of several: one forward or backward runs at a time in it, others wait.
struct CpuWorkSpace final : WorkSpace {
  size_t bytes() const override { return scratch.bytes() + slots.bytes() + tape.bytes(); }
  std::mutex one_pass;
  LargeMemory scratch;
  LargeMemory slots;  // a part for each thread
  LargeMemory tape;   // of programs that share it
};

/// A compiled segment.
class CpuProgram final : public Program {
 public:
  CpuProgram(const Graph& graph, const ProgramOptions& options, ThreadPool& threads);

  TensorSpec input_spec() const override { return input_spec_; }
  TensorSpec output_spec() const override { return output_spec_; }
  std::unique_ptr<Weights> new_weights() const override;
  std::unique_ptr<Tape> new_tape() const override { return new_tape_in(nullptr); }
  std::unique_ptr<Tape> new_tape_in(std::unique_ptr<Tape> former) const override;
  void use_memory_of(Tape& tape) const override;
  void load(Weights& weights, std::span<const float> parameters,
            std::span<const float> buffers) const override;
  void forward(const Weights& weights, Tape& tape, const ForwardInput& in,
               const ForwardOutput& out) const override;
  void backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                const BackwardOutput& out) const override;

  ProgramMemory memory() const override {
    return {shares_space_ ? 0 : buffers_.tape_bytes(), weight_bytes_, space_->bytes()};
  }
  /// Bytes of a micro-batch that each layer of the graph keeps from forward to backward.
  std::vector<size_t> kept_bytes() const { return buffers_.tape_bytes_by_layer(forward_, layers_); }
  /// Counts the time of each piece of every pass from now on. Not while a pass runs.
  void start_stopwatches();
  std::vector<LayerSeconds> take_layer_seconds() const override;

 private:
  void plan(Compilation& compilation);
  void find_untrained(const Graph& graph);
  void check_gradients() const;
  Run make_run(const Weights& weights, Tape& tape) const;

  const ProgramOptions options_;
  ThreadPool& threads_;
  const Blocks blocks_;
  TensorSpec input_spec_, output_spec_;
  int64_t parameter_count_ = 0, buffer_count_ = 0;
  int layers_ = 0;
  std::vector<Range> untrained_;  // of the gradients: nothing is written there
  std::vector<std::unique_ptr<Operation>> operations_;
  BufferPlan buffers_;
  Schedule forward_, backward_;
  size_t weight_bytes_ = 0, slot_bytes_ = 0;

  const bool shares_space_;
  const std::shared_ptr<CpuWorkSpace> space_;
  mutable Slots slots_;
  /// Of the pass that begins; null: it is not timed.
  Stopwatch* watch_of(const std::unique_ptr<Stopwatch>& watch, std::atomic<uint32_t>& passes) const;

  bool times_all_ = false;  // else one pass of many
  std::unique_ptr<Stopwatch> forward_watch_, backward_watch_;
  mutable std::atomic<uint32_t> forward_passes_ = 0, backward_passes_ = 0;
};

}  // namespace outrigger::nn::cpu
