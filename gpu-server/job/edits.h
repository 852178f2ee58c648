#pragma once

#include <cstdint>
#include <string>

#include "api/training_job.h"
#include "gpu-server/job/job_plan.h"
#include "nn/graph.h"

/// What a running server takes of a job that was edited: the rest is the next attempt's.
namespace outrigger::gpu_server {

/// What it was told last.
struct Edits {
  int64_t generation = 0;  // of the job
  std::string refused;     // why that was not taken; empty: it was
};

/// A job as it was told: a JSON object with its generation and the job. Throws InvalidInput.
struct ToldJob {
  int64_t generation = 0;
  std::string job;  // JSON
};
ToldJob read_told_job(const std::string& body);

/// `running` with what may change while it runs as `told` has it: spec.split, spec.workers and
/// spec.progressDeadlineSeconds. Throws InvalidInput that names the field where `told` is no job,
/// or asks for a split that this server cannot move to.
api::TrainingJob edited_job(const api::TrainingJob& running, const std::string& told,
                            const nn::Graph& graph, const RunSize& size);

}  // namespace outrigger::gpu_server
