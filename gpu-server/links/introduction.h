#pragma once

#include <cstdint>
#include <filesystem>

#include "api/training_job.h"
#include "common/thread_pool.h"
#include "data/sample.h"
#include "gpu-server/device/device.h"
#include "gpu-server/links/server_feed.h"
#include "nn/graph.h"

namespace outrigger::gpu_server {

/// What the server tells a worker that joins, and what it wants to hear: the same bytes of the same
/// files, and, where the device is not a GPU, the same arithmetic. Takes as long as a few
/// micro-batches.
JoinTerms join_terms(const api::TrainingJob& job, const nn::Graph& graph,
                     const data::Dataset& train, const std::filesystem::path& train_root,
                     uint64_t incarnation, ThreadPool& threads, const OpenDevice& device);

/// Bytes that a worker needs to run the whole network in inference, on so many images at once.
/// Infinite where the weights are more than one frame carries: then the server evaluates.
double scoring_memory(const nn::Graph& graph, int64_t images);

/// What results must be at each cut of the graph.
feed::Crossings crossings_of(const nn::Graph& graph, ElementType activations);

}  // namespace outrigger::gpu_server
