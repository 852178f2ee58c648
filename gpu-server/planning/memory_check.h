#pragma once

#include "api/training_job.h"
#include "common/thread_pool.h"
#include "gpu-server/job/job_plan.h"
#include "nn/graph.h"
#include "training/planner/model/costs.h"

/// Whether a machine holds a job, asked before anything runs a whole micro-batch: a process that
/// takes more than there is gets killed without a word. All throw InvalidInput, with the
/// micro-batch size that would fit.
namespace outrigger::gpu_server {

/// Where a server's `memory` does not hold cut Input, with which a run begins whose plan is to be
/// found; `costs` are of a device that has arrays of its own.
void check_memory(const training::JobCosts& costs, const api::TrainingJob& job, double memory);

/// Likewise of a server that trains on its cores. Only compiles.
void check_memory_of_cores(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                           double memory, ThreadPool& threads);

/// Of the passes that measure a job on this machine's cores. Only compiles.
void check_memory_to_measure(const api::TrainingJob& job, const nn::Graph& graph,
                             const RunSize& size, double memory, ThreadPool& threads);

}  // namespace outrigger::gpu_server
