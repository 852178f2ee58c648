#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
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

/// Behind the network's last layer, instead of softmax cross-entropy: the loss of a micro-batch,
/// and d loss / d output of the sum over its samples.
using LossFunction = std::function<nn::LossResult(
    const feed::ReadyMicroBatch& batch, const ConstTensorView& output, const TensorView& gradient)>;

/// Told while a micro-batch's backward pass runs, on the thread that started it: its gradients are
/// final from `first` to the arena's end. `gradients`: the whole arena, as in ChunkResult.
using GradientsReady = std::function<void(std::span<const float> gradients, int64_t first)>;

struct DeviceOptions {
  int64_t micro_batch = 1;
  nn::Precision precision = nn::Precision::kFloat32;
  uint64_t seed = 0;
  float label_smoothing = 0;
  LossFunction loss = {};  // on the host; absent: softmax cross-entropy, where the device is
  /// How many micro-batches may run as one, each a group of batch norm; more than one for a backend
  /// that keeps a run's arrays itself.
  uint32_t most_at_once = 1;
  /// Of a backend that keeps a run's arrays itself.
  nn::SgdOptions optimizer = {};
  std::optional<float> average_decay = std::nullopt;
};

/// What micro-batches that ran as one gave. Spans point into the device and hold until the next
/// start.
struct ChunkResult {
  uint64_t step = 0;
  uint32_t first = 0;       // index of the first micro-batch
  uint64_t first_slot = 0;  // its first sample's
  nn::LossResult loss;
  /// d loss / d parameters, summed over the samples: the whole arena, of which `gradient_range` was
  /// computed here (all of it, or what lies behind the cut). Empty where Device::resident() has
  /// added them already.
  std::span<const float> gradients;
  nn::Range gradient_range;
  /// Of each micro-batch the gradient at the cut, where the stem ran elsewhere and trains; else
  /// none.
  std::vector<std::shared_ptr<const Tensor>> cut_gradients;
};

/// The server's device: runs what lies behind the cut for every micro-batch, and the layers before
/// it for micro-batches that came as pixels. Before and behind are two programs, so that a moved
/// stem gives bitwise the same; a device with arrays of its own runs both as one where it can. One
/// thread.
class Device {
 public:
  using Batches = std::span<const feed::ReadyMicroBatch>;

  /// References must outlive this.
  Device(DeviceOptions options, const nn::Graph& graph, const nn::Backend& backend,
         ThreadPool& threads);

  /// From now on steps are cut behind `cut` layers; compiles what is not compiled. `stem_trains`:
  /// gradients cross. Nothing is under way.
  void set_cut(int32_t cut, bool stem_trains);
  /// The device's own arrays of the run; null where they are the host's.
  nn::Resident* resident() const { return resident_.get(); }
  /// By layer of the graph, moving averages of few passes; empty where the backend does not tell.
  const std::vector<LayerSeconds>& layer_seconds() const { return layer_seconds_; }
  /// What gradients are multiplied by on a resident's way; 1 but for float16.
  void set_loss_scale(float scale) { loss_scale_ = scale; }
  /// Weights of the next micro-batches: the stem's (from an older version under staleness) and the
  /// head's. Whole arenas. With a resident, `parameters` is not read, and neither is
  /// `stem_parameters` where it is empty: both are the resident's.
  void load(std::span<const float> stem_parameters, std::span<const float> parameters,
            std::span<const float> buffers);

  /// How many micro-batches that are cut there run as one at most.
  uint32_t most_at_once(int32_t cut) const;
  /// Begins to bring what start() gets next, which will be under this plan, to the device. At most
  /// one ahead; nothing where the device is the host.
  void stage(Batches batches);
  /// Begins with micro-batches of one step that follow one another and are cut alike. Statistics of
  /// all norms that run in training, the stem's among them, are in `statistics`, {batches,
  /// buffer_count()}, when it is collected. `last`: of the step, on this rank, with nothing cut
  /// away; as nn::ResidentPass::last. `ready`: of a device that is the host, which may tell nothing
  /// as well, and does not where the loss is no number.
  void start(Batches batches, std::span<float> statistics, bool last = false,
             const GradientsReady& ready = {});
  /// How many were started and not collected, and how many may be before the next start.
  size_t started() const { return under_way_.size() + results_.size(); }
  size_t most_started() const;
  /// What was started first, when it is done.
  ChunkResult collect();

 private:
  struct Part {
    nn::Segment segment;
    std::unique_ptr<nn::Program> program;
    std::unique_ptr<nn::Weights> weights;
    std::unique_ptr<nn::Tape> tape;
    bool loaded = false;
    nn::ResidentPass pass(bool last = false) const { return {*program, *weights, *tape, last}; }
  };
  /// A pass that a resident has not told of yet.
  struct UnderWay {
    ChunkResult result;
    Tensor cut_gradient;      // of all its micro-batches; empty where none is wanted
    bool stem_after = false;  // the stem's backward pass is still to be run here
  };
  struct Staged {
    uint64_t step = 0;
    uint32_t first = 0;
    size_t count = 0;
  };
  /// `former`: whose place it takes.
  Part make_part(nn::Segment segment, bool input_gradient, uint32_t groups, Part& former,
                 std::shared_ptr<nn::WorkSpace> space = nullptr) const;
  /// Empty parameters: the resident's.
  void load_part(Part& part, std::span<const float> parameters,
                 std::span<const float> buffers) const;
  bool stem_is_stale() const { return !stem_parameters_.empty(); }
  Part& stem();
  /// Whether each micro-batch's output comes to the host before the next begins.
  bool tells_host() const { return resident_ == nullptr || options_.loss; }
  /// A resident's program for so many micro-batches that are cut there.
  Part& chunk_part(int32_t cut, uint32_t groups);
  /// With its weights, where those of no other chunk are loaded meanwhile.
  Part& loaded_chunk_part(int32_t cut, uint32_t groups);
  /// Throws InvalidInput unless it has the program's type and shape; `unpacks`: or is activations
  /// with their scales.
  void check_input(const feed::ReadyMicroBatch& batch, const nn::TensorSpec& spec,
                   bool unpacks = false) const;
  void forward_stem(const feed::ReadyMicroBatch& batch, std::span<float> statistics);
  nn::ForwardInput input_of(const feed::ReadyMicroBatch& batch, const ConstTensorView& input) const;
  void start_on_host(const feed::ReadyMicroBatch& batch, std::span<float> statistics,
                     const GradientsReady& ready);
  /// All that a micro-batch's gradient at the output gives here.
  void backward_on_host(ChunkResult& result, bool stem_here, const GradientsReady& ready);
  void run_backward(const Part& part, const ConstTensorView& output_gradient,
                    const TensorView& input_gradient, const GradientsReady& ready);
  void start_resident(Batches batches, std::span<float> statistics, bool last);
  std::vector<std::shared_ptr<const Tensor>> split(const Tensor& gradient, size_t count) const;

  const DeviceOptions options_;
  const nn::Graph& graph_;
  const nn::Backend& backend_;
  ThreadPool& threads_;
  const std::unique_ptr<nn::Resident> resident_;
  std::vector<LayerSeconds> layer_seconds_;
  float loss_scale_ = 1;
  int32_t cut_ = -1;
  bool stem_trains_ = false;
  Part head_;  // where the host is told
  Part stem_;
  Part former_stem_;  // of the cut before, for the first step at this one
  bool first_step_ = true;
  /// Of chunks, whose passes are whole one behind the other: what they take is what the largest
  /// takes. Null where each has memory of its own.
  const std::shared_ptr<nn::WorkSpace> chunk_space_;
  std::map<std::pair<int, uint32_t>, Part> chunks_;  // a resident's, by first layer and groups
  const Part* loaded_chunk_ = nullptr;               // whose weights are those of this step
  std::optional<Staged> staged_;
  std::deque<UnderWay> under_way_;
  std::deque<ChunkResult> results_;  // where the host is told
  std::vector<float> gradients_;
  Tensor logits_;
  Tensor logits_gradient_;
  Tensor crossing_;  // activations at the cut, of micro-batches whose stem runs here
  std::span<const float>
      stem_parameters_;  // as loaded, for a stem that is compiled later in the step
  std::span<const float> buffers_;
};

}  // namespace outrigger::training
