#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/tensor.h"
#include "common/thread_pool.h"
#include "feed/coordinator.h"
#include "nn/graph.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/program.h"
#include "nn/resident.h"

namespace outrigger::training {

struct DeviceOptions {
  int64_t micro_batch = 1;
  nn::Precision precision = nn::Precision::kFloat32;
  uint64_t seed = 0;
  float label_smoothing = 0;
  /// Of a backend that keeps a run's arrays itself.
  nn::SgdOptions optimizer = {};
  std::optional<float> average_decay = std::nullopt;
};

/// What one micro-batch gave. Spans point into the device and hold until the next run.
struct MicroBatchResult {
  nn::LossResult loss;
  /// d loss / d parameters, summed over the samples: the whole arena, of which `gradient_range` was
  /// computed here (all of it, or what lies behind the cut). Empty where Device::resident() has
  /// added them already.
  std::span<const float> gradients;
  nn::Range gradient_range;
  /// The gradient at the cut, where the stem ran elsewhere and trains; else null.
  std::shared_ptr<const Tensor> cut_gradient;
  /// Of all norms that ran in training, the stem's among them: buffer_count() floats.
  std::span<const float> statistics;
};

/// The server's device: runs what lies behind the cut for every micro-batch, and the layers before
/// it for micro-batches that came as pixels. Before and behind are two programs, so that a moved
/// stem gives bitwise the same. One thread.
class Device {
 public:
  /// References must outlive this.
  Device(DeviceOptions options, const nn::Graph& graph, const nn::Backend& backend,
         ThreadPool& threads);

  /// From now on steps are cut behind `cut` layers; compiles what is not compiled. `stem_trains`:
  /// gradients cross.
  void set_cut(int32_t cut, bool stem_trains);
  /// The device's own arrays of the run; null where they are the host's.
  nn::Resident* resident() const { return resident_.get(); }
  /// What gradients are multiplied by on a resident's way; 1 but for float16.
  void set_loss_scale(float scale) { loss_scale_ = scale; }
  /// Weights of the next micro-batches: the stem's (from an older version under staleness) and the
  /// head's. Whole arenas. With a resident, `parameters` is not read, and neither is
  /// `stem_parameters` where it is empty: both are the resident's.
  void load(std::span<const float> stem_parameters, std::span<const float> parameters,
            std::span<const float> buffers);
  /// `last`: of the step, on this rank, with nothing cut away; as nn::ResidentPass::last.
  MicroBatchResult run(const feed::ReadyMicroBatch& batch, bool last = false);

 private:
  struct Part {
    nn::Segment segment;
    std::unique_ptr<nn::Program> program;
    std::unique_ptr<nn::Weights> weights;
    std::unique_ptr<nn::Tape> tape;
    bool loaded = false;
  };
  Part make_part(nn::Segment segment, bool input_gradient) const;
  /// Empty parameters: the resident's.
  void load_part(Part& part, std::span<const float> parameters,
                 std::span<const float> buffers) const;
  std::span<float> statistics_of(const Part& part);
  Part& stem();
  void forward(Part& part, const ConstTensorView& input, const feed::ReadyMicroBatch& batch,
               const TensorView& output);
  nn::LossResult run_head(const ConstTensorView& input, const feed::ReadyMicroBatch& batch,
                          const TensorView& input_gradient, bool last);
  void backward(Part& part, const ConstTensorView& output_gradient,
                const TensorView& input_gradient);

  const DeviceOptions options_;
  const nn::Graph& graph_;
  const nn::Backend& backend_;
  ThreadPool& threads_;
  const std::unique_ptr<nn::Resident> resident_;
  float loss_scale_ = 1;
  int32_t cut_ = -1;
  bool stem_trains_ = false;
  Part head_;
  Part stem_;
  std::vector<float> gradients_;
  std::vector<float> statistics_;
  Tensor logits_;
  Tensor logits_gradient_;
  Tensor crossing_;  // activations at the cut, of micro-batches whose stem runs here
  std::span<const float>
      stem_parameters_;  // as loaded, for a stem that is compiled later in the step
  std::span<const float> buffers_;
};

}  // namespace outrigger::training
