#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/loss_scale.h"

namespace outrigger::training {

/// How a planner had divided the work.
struct FoundPlan {
  std::string cut;  // by its name
  uint32_t stems_away = 0;
  uint32_t local_inputs = 0;
  uint32_t micro_batches = 0;  // of a step then
  bool operator==(const FoundPlan&) const = default;
};

/// All that a run is, between two steps: what a checkpoint holds and what a resumed run starts
/// from. A run is a pure function of the job, the data and this.
struct TrainingState {
  uint64_t step = 0;  // steps committed; also the cursor of the stream of samples and the version
                      // of the weights
  uint64_t incarnation = 0;       // lives of the server so far; a resume adds one
  std::vector<float> parameters;  // nn::Graph::parameter_count()
  std::vector<float> momentum;    // as parameters
  std::vector<float> buffers;     // nn::Graph::buffer_count(), running averages
  std::vector<float>
      averaged;  // exponential moving average of the parameters; empty where the job asks for none
  /// With staleness s: the parameters of the versions step - s … step - 1 (whole arenas; few and
  /// only where s > 0).
  std::map<uint64_t, std::vector<float>> former_parameters;
  std::vector<uint32_t> bad_samples;  // ids found broken so far, ascending
  double best_metric = 0;             // of the validation metric, where best_step is set
  int64_t best_step = -1;
  int64_t evaluations_without_gain = 0;
  nn::LossScale loss_scale;     // of float16
  int64_t evaluated_step = -1;  // the newest evaluation; a stop in the middle of one leaves it due
  /// Where a run that goes on may begin to look for its plan; no result depends on it.
  std::optional<FoundPlan> plan;
  /// The state whose weights workers are evaluating beside training, without this member and the
  /// former parameters: it is gone on with after a resume. Null: none.
  std::shared_ptr<TrainingState> evaluating;
};

}  // namespace outrigger::training
