#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/training_job.h"
#include "common/thread_pool.h"
#include "data/sample.h"
#include "feed/coordinator.h"
#include "feed/order.h"
#include "feed/plan.h"
#include "nn/graph.h"
#include "training/model_card.h"
#include "training/trainer.h"

/// What a TrainingJob means to the server: numbers of steps, the plan, the options of its parts.
namespace outrigger::gpu_server {

/// Sizes that follow from the job and the data.
struct RunSize {
  uint64_t samples = 0;
  uint64_t total_steps = 0;    // ceil(epochs * samples / batch), or training.steps
  uint32_t batch = 0;          // B, over all ranks
  uint32_t micro_batches = 0;  // M of one rank
  double epochs_of(uint64_t step) const {
    return static_cast<double>(step) * batch / static_cast<double>(samples);
  }
};

RunSize run_size(const api::TrainingJob& job, const data::Dataset& train);
feed::Plan first_plan(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size);
/// The deepest cut that a plan of this job may use, in layers.
int32_t deepest_cut(const api::TrainingJob& job, const nn::Graph& graph);
feed::OrderOptions order_options(const api::TrainingJob& job, const data::Dataset& train);
/// What the job's weights files say of themselves.
training::ModelCard model_card(const api::TrainingJob& job, std::vector<std::string> classes);
training::TrainerOptions trainer_options(const api::TrainingJob& job, const RunSize& size);

/// Lists a data set of the job at `root`; labels of a validation set follow training's classes.
data::Dataset list_data(const api::DataSource& source, const std::filesystem::path& root,
                        const std::vector<std::string>& classes);

}  // namespace outrigger::gpu_server
