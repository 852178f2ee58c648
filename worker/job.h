#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/training_job.h"
#include "data/pipeline.h"
#include "nn/graph.h"
#include "nn/models.h"
#include "nn/program.h"

/// What a TrainingJob means to those who compute: server and workers read it with the same
/// functions, so they agree.
namespace outrigger::worker {

/// The job that the server's first words hold. Throws InvalidInput where it cannot be read.
api::TrainingJob read_job(const std::string& text);
/// How to build the model; InvalidInput for a model given as layers, which has no name.
nn::ModelOptions model_options(const api::TrainingJob& job, int64_t classes);
/// The network with its head for the job's loss. Throws InvalidInput that names the field.
nn::Graph build_graph(const api::TrainingJob& job, int64_t classes);
data::PipelineOptions pipeline_options(const api::TrainingJob& job);
/// What CPUs compute the job in: Float32 where it asks for Float16, which they have not.
nn::Precision precision(const api::TrainingJob& job);
/// How activations lie in memory at a cut.
ElementType activation_type(const api::TrainingJob& job);
/// The backend of CPUs for the job's programs, with what it asks to recompute.
std::unique_ptr<nn::Backend> cpu_backend(const api::TrainingJob& job);
uint64_t seed(const api::TrainingJob& job);
int64_t micro_batch(const api::TrainingJob& job);
/// For about how many threads a pass over a micro-batch has work.
int stem_threads(const api::TrainingJob& job, const nn::Graph& graph);
/// Whether evaluations need embeddings.
bool scores_embeddings(const api::TrainingJob& job);

}  // namespace outrigger::worker
