#pragma once

#include <memory>
#include <vector>

#include "nn/cuda/bucket_plan.h"
#include "nn/cuda/compilation.h"
#include "nn/cuda/input_ring.h"
#include "nn/cuda/pass_plan.h"
#include "nn/cuda/tape.h"
#include "nn/cuda/work_space.h"
#include "nn/program.h"
#include "nn/resident.h"

namespace outrigger::nn::cuda {

/// A segment compiled for an engine: its steps, and one scratch arena that all passes share; every
/// tape and every copy of the weights has memory of its own on the device, unless they are in the
/// work space that the options give (work_space.h). Inputs and outputs are on the host: a pass
/// returns when they are there.
class CudaProgram final : public Program {
 public:
  /// `cuts`: what lies between them is computed again instead of kept (pass_plan.h).
  CudaProgram(const Graph& graph, const ProgramOptions& options, std::shared_ptr<Engine> engine,
              const std::vector<int>& cuts = {});

  TensorSpec input_spec() const override { return input_spec_; }
  TensorSpec output_spec() const override { return output_spec_; }
  ProgramMemory memory() const override;
  std::unique_ptr<Weights> new_weights() const override;
  std::unique_ptr<Tape> new_tape() const override;
  void load(Weights& weights, std::span<const float> parameters,
            std::span<const float> buffers) const override;
  void forward(const Weights& weights, Tape& tape, const ForwardInput& in,
               const ForwardOutput& out) const override;
  void backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                const BackwardOutput& out) const override;

  /// A copy of parameters that are on the device already: the segment's.
  void load_from_device(Weights& weights, const float* parameters,
                        std::span<const float> buffers) const;
  /// Where a pass leaves its gradients on the device: added to the segment's sums.
  struct Sums {
    float* gradients = nullptr;
    float loss_scale = 1;
    Collective* ranks = nullptr;  // sums what is final over them, beside the rest of the pass
    void* rounded = nullptr;      // where it is bfloat16 for that; null: as it is
  };
  /// What a pass leaves for the host, in pinned memory behind a mark; used again and again.
  struct Told {
    PinnedMemory memory;
    std::unique_ptr<Mark> there;
    std::unique_ptr<Instant> begun, input_there, forward_done, done;
  };
  /// As Resident::stage, train and backward; what train tells is read when it is there.
  void stage(const ResidentPass& pass, std::span<const ForwardInput> parts) const;
  void train(const ResidentPass& pass, float smoothing, const Sums& sums, Told& told) const;
  LossResult read(const Told& told, std::span<float> statistics,
                  const TensorView& input_gradient) const;
  /// Begins the sum over the ranks of floats [first, first + count) of the gradients that `sums`
  /// has; behind it, rounded ones are still to be brought back.
  static void begin_sum(const Kernels& kernels, const Sums& sums, int64_t first, int64_t count);
  /// Of a pass that was read.
  static void add_times(const Told& told, ResidentTimes& times);
  void backward_into(const ResidentPass& pass, const ConstTensorView& output_gradient,
                     const Sums& sums) const;
  Segment segment() const { return options_.segment; }

  size_t tape_bytes() const { return plan_.buffers.tape_bytes(); }
  size_t scratch_bytes() const { return plan_.buffers.scratch_bytes(); }
  size_t steps() const { return plan_.steps.size(); }
  /// What of a pass's forward is there until its backward, by the layer whose it is (the last of
  /// those that run as one), the most first. Computed again: what enters pieces, and the last
  /// piece.
  std::shared_ptr<const std::vector<MemoryUse>> kept_by_layers() const { return kept_by_layers_; }

 private:
  void take_memory();
  void name_kept(const Graph& graph);
  void find_untrained(const Graph& graph, const Compilation& compilation);
  std::byte* memory_of(const Weights& weights) const;
  InputRing& ring_of(CudaTape& tape) const;
  Run make_run(const Weights& weights, const Tape& tape) const;
  void check_input(const ForwardInput& in) const;
  /// Whether that can be staged.
  bool takes(const ForwardInput& part) const;
  void take_input_memory(CudaTape& tape) const;
  /// Everything but what `run` says already; queues the work.
  void bring(Run& run, Tape& tape, const ForwardInput& in) const;
  void run_forward(Run& run, size_t first, size_t end) const;
  /// Before backward: what a tape does not keep is in the scratch arena.
  void recall(Run& run, const Tape& tape) const;
  void run_backward(Run& run, size_t first, size_t last) const;
  /// Of what lies behind the input step and ends with a bucket's gradients, or with the pass.
  struct Piece {
    size_t first = 0, last = 0;  // steps of the backward pass
    size_t first_bucket = 0, last_bucket = 0;
    bool forward = false;  // the forward pass, and nothing else
  };
  void run_piece(Run run, const Piece& piece, const Sums& sums) const;
  /// As recordings from the second time on.
  void run_pieces(const Run& run, Tape& tape, const Sums& sums, Instant& forward_done) const;
  /// `sums` null: gradients stay where they are.
  void finish_bucket(Range bucket, const Sums* sums) const;
  void plan_gradient_buckets(const Graph& graph, const Compilation& compilation);
  void plan_pieces();
  void find_measured(const Graph& graph);
  /// To rows of the segment's buffers, or of the whole graph's.
  void copy_measured(const float* from, std::span<float> statistics, Range row) const;
  float* told_statistics() const { return told_floats() + 2 * options_.batch; }
  float* told_floats() const {
    return reinterpret_cast<float*>(space_->data(CudaWorkSpace::kTold));
  }
  float* gradients() const {
    return reinterpret_cast<float*>(space_->data(CudaWorkSpace::kGradients));
  }
  size_t input_bytes() const;
  void make_told(Told& told) const;

  const ProgramOptions options_;
  const std::shared_ptr<Engine> engine_;
  const bool shares_space_;
  const std::shared_ptr<CudaWorkSpace> space_;
  TensorSpec input_spec_, output_spec_;
  size_t parameter_bytes_ = 0, average_bytes_ = 0, weight_bytes_ = 0;
  size_t averages_at_ = 0;
  Range graph_row_;  // where the segment's buffers begin, of how many
  bool ends_graph_ = false;
  std::vector<Range> untrained_;  // of the segment's gradients
  std::vector<Range> measured_;   // of the segment's statistics
  PassPlan plan_;
  std::shared_ptr<const std::vector<MemoryUse>> kept_by_layers_;
  std::vector<GradientBucket> buckets_;
  std::vector<Piece> pieces_;
  mutable const Tape* recalled_ = nullptr;  // whose forward pass was the last in the scratch arena
  size_t told_bytes_ = 0;  // losses {batch, 2}, then statistics {groups, the segment's buffers}
};

}  // namespace outrigger::nn::cuda
