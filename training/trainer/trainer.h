#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/error.h"
#include "common/thread_pool.h"
#include "feed/feed.h"
#include "nn/graph.h"
#include "nn/optimizer.h"
#include "nn/program.h"
#include "training/device.h"
#include "training/state.h"
#include "training/trainer/gradient_sums.h"
#include "training/trainer/partial_fc.h"
#include "training/trainer/reducer.h"

namespace outrigger::training {

/// The loss, a gradient or a weight is no number any more: the run is over, and nothing of it is to
/// be saved.
class NumericalError : public Error {
 public:
  using Error::Error;
};

struct TrainerOptions {
  DeviceOptions device;
  uint32_t micro_batches = 1;  // M of this rank
  uint64_t staleness = 0;      // s
  /// Above 1 every rank steps by itself, and so many steps apart all take the mean of their
  /// weights.
  uint64_t sync_every = 1;
  uint64_t total_steps = 0;          // the last of which ends in a mean
  bool bfloat16_all_reduce = false;  // gradients travel between ranks as bfloat16
  /// How many of them ranks on CPUs sum at once; the same on all.
  size_t gradient_bucket = GradientSumsOptions{}.bucket;
  /// How many floats of the parameters the stem of any plan may have; 0: all.
  uint64_t most_stem_parameters = 0;
  /// Shares the last layer, an ArcFace, out over the ranks; of it micro_batch and seed are
  /// device's.
  std::optional<PartialFcOptions> partial_fc;
  nn::SgdOptions optimizer;
  std::function<float(uint64_t step)> learning_rate;
  std::optional<double> clip_gradient_norm;
  std::optional<float> average_decay;
  /// Where devices exchange gradients themselves: how long one waits for the others.
  Duration rank_limit = std::chrono::seconds(60);
};

/// What one step told.
struct StepReport {
  uint64_t step = 0;
  feed::Plan plan;
  double loss = 0;      // mean over the batch, over all replicas
  double accuracy = 0;  // share of the batch whose largest logit was right, of those computed
  float learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  bool skipped = false;      // float16's gradients were too large: nothing was updated
  Duration took{0};
  Duration waited_for_input{0};             // the device stood still for micro-batches
  Duration waited_for_gradients{0};         // and for stem gradients
  Duration waited_for_ranks{0};             // until all ranks had added up what they have
  Duration optimizer{0};                    // from the last gradient to the step's end
  std::optional<nn::ResidentTimes> device;  // of a device that keeps the run's arrays
  std::vector<feed::AuditItem> audit;
};

/// Runs steps: for every micro-batch in index order head forward, loss and backward; gradients
/// added in index order to float32 sums; then clip, optimizer, running averages, and the next
/// version of the stem goes out. The state changes only at the end of a step, so it is a checkpoint
/// between any two calls (where synchronized). One thread.
class Trainer {
 public:
  /// References must outlive this. `reducer` may be null: one replica.
  Trainer(TrainerOptions options, const nn::Graph& graph, const nn::Backend& backend,
          ThreadPool& threads, feed::Feed& feed, const Clock& clock, TrainingState state,
          Reducer* reducer = nullptr);

  /// One optimizer step. Throws NumericalError, and what the feed throws.
  StepReport step();
  const TrainerOptions& options() const { return options_; }
  /// Whether all ranks have the same state between these two steps: a checkpoint.
  bool synchronized() const;
  /// From the next step that is not drawn yet.
  void set_plan(const feed::Plan& plan);
  /// Everything; brings what a device keeps for itself to the host. Of what ranks share out only
  /// this rank's part is new, unless all were gathered.
  TrainingState& state();
  /// Gives every rank all of what they share out; all ranks call it between the same two steps.
  void gather_state();
  /// The same, but for a device's arrays (parameters, momentum, averaged), which may be older.
  const TrainingState& counters() const { return state_; }
  /// As Device::layer_seconds().
  const std::vector<LayerSeconds>& layer_seconds() const { return device_.layer_seconds(); }
  TrainingState& counters() { return state_; }

 private:
  struct Sums {
    double loss = 0;
    int64_t correct = 0;
  };
  /// Whether devices of several ranks sum gradients themselves.
  bool join_ranks();
  DeviceOptions device_options();
  std::unique_ptr<PartialFc> make_partial_fc(const nn::Backend& backend, ThreadPool& threads);
  /// The part of an array of the whole model that this rank's network has.
  std::span<float> trunk_of(std::vector<float>& arena) const {
    return std::span(arena).first(
        std::min(arena.size(), static_cast<size_t>(trunk_.parameter_count())));
  }
  /// What is behind that: the classifier's.
  std::span<float> classes_of(std::vector<float>& arena) const {
    return std::span(arena).subspan(trunk_of(arena).size());
  }
  /// Steps the classifier, if ranks share one out.
  void update_classes(const StepReport& report);
  void publish(uint64_t version, std::span<const float> parameters, uint64_t count);
  /// How many parameters the stem of any plan may have.
  uint64_t most_stem_parameters() const;
  void publish_frozen_stem();
  void publish_stems();
  void run_micro_batches(StepReport& report, Sums& sums);
  feed::ReadyMicroBatch take(uint32_t index, StepReport& report);
  /// Micro-batches [first, first + count), which are cut alike.
  void start_chunk(uint32_t first, uint32_t count, StepReport& report);
  void collect_chunk(const StepReport& report, Sums& sums);
  /// Begins with the input of the next step, as far as it is there.
  void stage_next(const StepReport& report);
  /// What adds the last micro-batch's gradients, and has them summed over ranks, as they become
  /// final; null where ranks do not sum on the host.
  GradientsReady add_when_ready(const feed::Plan& plan);
  void add_stem_gradients(StepReport& report);
  void add(std::span<const float> gradients, nn::Range range);
  /// The part that was not added on the way.
  nn::Range rest_of(nn::Range range) const {
    return {range.offset, std::min(range.end(), added_from_) - range.offset};
  }
  /// Of a micro-batch behind those whose stems are away: its stem's gradients have to wait.
  void add_but_the_stem(const ChunkResult& result, const feed::Plan& plan);
  void reduce(Sums& sums);
  void reduce_gradients();
  void update(StepReport& report);
  /// The two ways of it. False: the gradients are not finite, and nothing was done.
  bool update_on_host(StepReport& report);
  bool update_on_device(StepReport& report);
  void after_update(bool finite, StepReport& report);
  void keep_former();
  void forget_former();
  void update_statistics();
  uint64_t stem_version(uint64_t step) const;
  /// On the host, like what follows.
  const std::vector<float>& parameters();
  std::span<const float> parameters_of(uint64_t version);
  /// Of which the first `count` are as they are now; what is behind them may be older.
  std::span<const float> first_parameters_of(uint64_t version, uint64_t count);
  /// What the device runs the stem with; empty: its own.
  std::span<const float> stem_of(uint64_t version);
  /// Behind the message of a number that is none: what to do about it, if there is a way.
  std::string advice() const;
  bool float16() const { return options_.device.precision == nn::Precision::kFloat16; }
  /// On the host, in every step; null otherwise.
  std::unique_ptr<GradientSums> make_sums();
  /// Whether ranks step by themselves.
  bool local_steps() const;
  void average_over_ranks();
  /// Replaces these parts of an arena by their means over the ranks.
  void average(std::vector<float>& values, std::span<const nn::Range> ranges);
  void agree_on_loss_scale();
  uint32_t ranks() const { return reducer_ == nullptr ? 1 : reducer_->replicas(); }
  /// Samples of a step, over all ranks that step together.
  uint64_t batch_size() const;

  const TrainerOptions options_;
  const nn::Graph& graph_;
  const nn::Graph trunk_;  // what runs here: graph_, or what is before a layer that is shared out
  feed::Feed& feed_;
  const Clock& clock_;
  Reducer* reducer_;
  TrainingState state_;
  const std::unique_ptr<PartialFc> classifier_;  // null: the last layer is in trunk_
  bool gathered_ = true;                         // state_ has all of what is shared out
  Device device_;
  const bool sums_on_device_;
  bool parameters_fetched_ = true;  // state_ has what the device's arrays have
  bool others_fetched_ = true;
  std::vector<float> gradients_;  // sums, then means; on a device of its own, for the host's sums
  const std::unique_ptr<GradientSums> sums_;  // of gradients_ over ranks
  int64_t added_from_ = 0;  // gradients_ has the running micro-batch's from here on
  std::vector<float>
      statistics_;  // all replicas' micro-batches in index order, buffer_count() each
  std::optional<uint64_t> published_;       // the newest version of a stem that trains
  std::deque<feed::ReadyMicroBatch> next_;  // the next step's first ones, taken already
  std::vector<bool> stem_away_;             // per micro-batch: a stem gradient is still to come
  std::map<uint32_t, std::vector<float>> late_stems_;  // by index: gradients that wait for those
};

}  // namespace outrigger::training
