#include "gpu-server/planning/memory_check.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/error.h"
#include "gpu-server/planning/job_costs.h"
#include "gpu-server/planning/measured_graph.h"
#include "training/planner/batch_advice.h"
#include "training/planner/model/memory.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

/// What a server takes at cut Input, by the samples of a micro-batch.
using CostsOf = std::function<training::JobCosts(int64_t)>;

std::string misfit(const training::JobCosts& costs, double memory) {
  return training::misfit(costs, {.memory = memory}, {}, {});
}

training::JobCosts sizes_with(int64_t micro_batch, api::TrainingJob job, const nn::Graph& graph,
                              RunSize size, ThreadPool& threads) {
  const int64_t batch = size.micro_batches * worker::micro_batch(job);
  size.micro_batches = static_cast<uint32_t>(batch / micro_batch);
  job.spec.training.micro_batch_size = static_cast<int32_t>(micro_batch);
  return sizes_at(0, job, graph, size, threads);
}

/// The largest micro-batch of a rank's `batch` samples that fits, below one that does not.
std::string what_fits(const CostsOf& costs_of, int64_t batch, int64_t misfitting, double memory) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < misfitting; ++size) {
    if (batch % size == 0) sizes.push_back(size);
  }
  const auto too_large = std::ranges::partition_point(
      sizes, [&](int64_t size) { return misfit(costs_of(size), memory).empty(); });
  if (too_large == sizes.begin()) return "; no microBatchSize fits";
  return "; spec.training.microBatchSize: " + std::to_string(*std::prev(too_large)) + " would fit";
}

}  // namespace

void check_memory(const training::JobCosts& costs, const api::TrainingJob& job, double memory) {
  const std::string why = misfit(costs, memory);
  if (why.empty()) return;
  const auto micro_batch = static_cast<uint32_t>(worker::micro_batch(job));
  throw InvalidInput("cut Input, with which the run begins, " + why +
                     training::what_would_fit(costs, micro_batch, {.memory = memory}, {}));
}

void check_memory_of_cores(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                           double memory, ThreadPool& threads) {
  const CostsOf costs_of = [&](int64_t micro_batch) {
    return sizes_with(micro_batch, job, graph, size, threads);
  };
  const int64_t wanted = worker::micro_batch(job);
  const std::string why = misfit(costs_of(wanted), memory);
  if (!why.empty())
    throw InvalidInput("cut Input, with which the run begins, " + why +
                       what_fits(costs_of, size.micro_batches * wanted, wanted, memory));
}

void check_memory_to_measure(const api::TrainingJob& job, const nn::Graph& graph,
                             const RunSize& size, double memory, ThreadPool& threads) {
  const CostsOf costs_of = [&](int64_t micro_batch) {
    training::JobCosts costs = sizes_with(micro_batch, job, graph, size, threads);
    costs.parameters =
        sizeof(float) * static_cast<double>(measured_graph(job, graph).parameter_count());
    costs.copies = 3;         // weights, momentum, gradients
    costs.micro_batches = 1;  // in hand
    return costs;
  };
  const int64_t wanted = worker::micro_batch(job);
  const std::string why = misfit(costs_of(wanted), memory);
  if (!why.empty())
    throw InvalidInput("to measure the job, with one micro-batch in the whole network, " + why +
                       what_fits(costs_of, size.micro_batches * wanted, wanted, memory));
}

}  // namespace outrigger::gpu_server
