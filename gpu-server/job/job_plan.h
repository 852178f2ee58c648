#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/training_job.h"
#include "data/sample.h"
#include "feed/plan.h"
#include "nn/graph.h"

/// What a TrainingJob means to the server: numbers of steps and the plan.
namespace outrigger::gpu_server {

/// Sizes that follow from the job and the data.
struct RunSize {
  uint64_t samples = 0;
  uint64_t total_steps = 0;    // ceil(epochs * samples / batch), or training.steps
  uint32_t batch = 0;          // B, over all ranks
  uint32_t micro_batches = 0;  // M of one rank
  // About, for forecasts; 0: none is made.
  double steps_between_evaluations = 0;
  double steps_between_checkpoints = 0;
  double epochs_of(uint64_t step) const {
    return static_cast<double>(step) * batch / static_cast<double>(samples);
  }
};

RunSize run_size(const api::TrainingJob& job, const data::Dataset& train);

/// The last step before `step`, which is not 0, after which all ranks had the same weights.
uint64_t step_synchronized_before(const api::TrainingJob& job, uint64_t step);

/// Whether spec.split leaves anything to find.
bool wants_planner(const api::TrainingJob& job);

/// The plan that spec.split says; cut Input, or no stem away, where it leaves that to the planner.
/// Throws InvalidInput where the cut is none of the graph's or leaves the server too little, or
/// where every cut does and the planner would have none to find.
feed::Plan make_plan(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                     uint64_t number);
/// Where spec.split.sharePercent moves no stem, because it is so little or the cut is Input: a
/// sentence for people, with what moves one.
std::optional<std::string> share_advice(const api::TrainingJob& job, const RunSize& size);
/// Whether a run of `job` goes on from `plan`, which is in force: what is left to the planner it
/// finds from where the run is, unless the job names another cut.
bool goes_on_from(const feed::Plan& plan, const api::TrainingJob& job, const nn::Graph& graph);
/// Sets the wire formats that spec.split says.
void set_wires(feed::Plan& plan, const api::TrainingJob& job);
/// Sets what follows from a plan's cut: its name, sizes, and whether its stem trains.
void complete_plan(feed::Plan& plan, const nn::Graph& graph);
/// The plan of `job` with the fields of spec.split that `split` gives, a JSON object as in a
/// TrainingJob, and with localInputPercent of the micro-batches that cross no cut made by the
/// server itself; without a number. Throws InvalidInput that names the field, also where the result
/// leaves something to the planner.
feed::Plan asked_plan(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                      const std::string& split);
/// The deepest cut that a plan may move to, in layers: the last that leaves half of the
/// multiply-adds to the server, or as much as the job says where that is less, or the job's own cut
/// where that is deeper.
int32_t deepest_cut(const api::TrainingJob& job, const nn::Graph& graph);
/// Throws InvalidInput where a run of `job` cannot move to that cut.
void check_reachable(const std::string& cut, const api::TrainingJob& job, const nn::Graph& graph);

}  // namespace outrigger::gpu_server
