#include "cli/network.h"

#include <variant>

#include "worker/job.h"

namespace outrigger::cli {
namespace {

/// Any will do for a network with a name, or with ArcFace behind it; one in layers says how many
/// classes it has, if its last layer does.
std::optional<int64_t> classes_of(const api::TrainingSpec& training, const api::ModelSpec& model,
                                  int64_t any) {
  if (model.layers.empty() || std::holds_alternative<api::ArcFace>(training.loss)) return any;
  const auto* last = std::get_if<api::LinearLayer>(&model.layers.back().kind);
  return last == nullptr ? std::nullopt : std::optional<int64_t>(last->features);
}

}  // namespace

std::optional<nn::Graph> network_of(const api::TrainingJob& job, int64_t any) {
  const auto classes = classes_of(job.spec.training, job.spec.model, any);
  return classes ? std::optional(worker::build_graph(job, *classes)) : std::nullopt;
}

}  // namespace outrigger::cli
