#pragma once

#include <string>
#include <vector>

#include "api/training_job.h"
#include "data/sample.h"
#include "feed/order.h"
#include "gpu-server/job/job_plan.h"
#include "nn/graph.h"
#include "training/checkpoint/model_card.h"
#include "training/trainer/trainer.h"

/// What a TrainingJob means to the parts of a server.
namespace outrigger::gpu_server {

feed::OrderOptions order_options(const api::TrainingJob& job, const data::Dataset& train);
/// What the job's weights files say of themselves.
training::ModelCard model_card(const api::TrainingJob& job, std::vector<std::string> classes);
/// `precision`: the device's.
training::TrainerOptions trainer_options(const api::TrainingJob& job, const nn::Graph& graph,
                                         const RunSize& size, nn::Precision precision);

}  // namespace outrigger::gpu_server
