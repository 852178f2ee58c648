#include "gpu-server/planning/measured_graph.h"

#include <optional>
#include <variant>

#include "training/trainer/partial_fc.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

std::optional<double> rate_of_shared_classes(const api::TrainingJob& job) {
  const auto* arcface = std::get_if<api::ArcFace>(&job.spec.training.loss);
  if (arcface == nullptr || !arcface->partial_fc) return std::nullopt;
  return arcface->partial_fc->sample_rate;
}

}  // namespace

nn::Graph measured_graph(const api::TrainingJob& job, const nn::Graph& graph) {
  const auto rate = rate_of_shared_classes(job);
  if (!rate) return graph;
  // A rank compares the samples of all ranks with some of its classes.
  const int64_t ranks = api::rank_count(job.spec);
  const int64_t own = graph.layers().back().output.front() / ranks;
  if (own < 1) return graph;  // such a job is refused where its classes are shared out
  return worker::build_graph(
      job, ranks * training::classes_compared(*rate, own, ranks * worker::micro_batch(job)));
}

double stepped_part(const api::TrainingJob& job, const nn::Graph& graph) {
  if (!rate_of_shared_classes(job)) return 1;
  const double classes =
      static_cast<double>(graph.parameter_range({graph.size() - 1, graph.size()}).size) /
      static_cast<double>(graph.parameter_count());
  return 1 - classes * (1 - 1.0 / api::rank_count(job.spec));
}

}  // namespace outrigger::gpu_server
