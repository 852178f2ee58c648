#include "gpu-server/job/job_plan.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "common/error.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

WireFormat wire_of(api::WireFormat format, nn::Precision precision) {
  switch (format) {
    case api::WireFormat::kFloat32:
      return WireFormat::kFloat32;
    case api::WireFormat::kBFloat16:
      return WireFormat::kBFloat16;
    case api::WireFormat::kInt8:
      return WireFormat::kInt8;
    case api::WireFormat::kAuto:
      break;
  }
  // Auto never goes below the job's precision.
  return precision == nn::Precision::kBFloat16 ? WireFormat::kBFloat16 : WireFormat::kFloat32;
}

/// Steps after each of which all ranks have the same weights: only then may one of them be judged
/// or saved.
int64_t synchronized_every(const api::TrainingJob& job) {
  return api::rank_count(job.spec) == 1 ? 1 : job.spec.training.sync_every_steps;
}

void set_pace(const api::TrainingJob& job, RunSize& size) {
  const auto least = static_cast<double>(synchronized_every(job));
  size.steps_between_checkpoints =
      std::max(least, static_cast<double>(job.spec.checkpoint.every_steps));
  const auto& evaluate = job.spec.training.evaluate;
  if (!evaluate || !job.spec.data.validation) return;
  size.steps_between_evaluations =
      std::max(least, evaluate->every_steps ? static_cast<double>(*evaluate->every_steps)
                                            : static_cast<double>(size.samples) / size.batch);
}

}  // namespace

RunSize run_size(const api::TrainingJob& job, const data::Dataset& train) {
  const auto& training = job.spec.training;
  RunSize size;
  size.samples = train.size();
  size.batch = static_cast<uint32_t>(training.batch_size);
  size.micro_batches =
      size.batch / static_cast<uint32_t>(worker::micro_batch(job) * api::rank_count(job.spec));
  size.total_steps =
      training.steps
          ? static_cast<uint64_t>(*training.steps)
          : (static_cast<uint64_t>(*training.epochs) * size.samples + size.batch - 1) / size.batch;
  set_pace(job, size);
  return size;
}

uint64_t step_synchronized_before(const api::TrainingJob& job, uint64_t step) {
  const auto every = static_cast<uint64_t>(synchronized_every(job));
  return (step - 1) / every * every;
}

bool wants_planner(const api::TrainingJob& job) {
  const api::SplitSpec& split = job.spec.split;
  return split.cut == api::kCutAuto || (split.cut != api::kCutInput && !split.share_percent);
}

namespace {

/// Of the network's multiply-adds.
double stem_part(const nn::Graph& graph, int32_t cut) {
  return static_cast<double>(graph.multiply_adds({0, cut})) /
         static_cast<double>(graph.multiply_adds(graph.whole()));
}

}  // namespace

void complete_plan(feed::Plan& plan, const nn::Graph& graph) {
  plan.cut_name = graph.cut_at(plan.cut).name;
  plan.stem_percent = 100 * stem_part(graph, plan.cut);
  if (plan.cut == 0) return;
  plan.stem_trains = !graph.frozen_before(plan.cut);
  plan.stem_parameters = static_cast<uint64_t>(graph.parameter_range({0, plan.cut}).size);
  plan.stem_buffers = static_cast<uint64_t>(graph.buffer_range({0, plan.cut}).size);
}

void set_wires(feed::Plan& plan, const api::TrainingJob& job) {
  plan.activations = wire_of(job.spec.split.wire.activations, worker::precision(job));
  plan.gradients = wire_of(job.spec.split.wire.gradients, worker::precision(job));
}

namespace {

/// The deepest cut that leaves the server a layer, besides a classifier that ranks share out.
int32_t last_cut(const api::TrainingJob& job, const nn::Graph& graph) {
  const auto* arcface = std::get_if<api::ArcFace>(&job.spec.training.loss);
  return graph.size() - (arcface != nullptr && arcface->partial_fc ? 2 : 1);
}

uint32_t stems_of_share(int percent, const RunSize& size) {
  return static_cast<uint32_t>(std::lround(percent / 100.0 * size.micro_batches));
}

/// Of the network's multiply-adds, what a plan leaves the server.
double server_percent(const feed::Plan& plan, const nn::Graph& graph, const RunSize& size) {
  return 100 * (1 - stem_part(graph, plan.cut) * plan.stems_away / size.micro_batches);
}

/// The largest share of a cut that leaves the server its part, in percent; 0: there is none. Shares
/// are rounded to micro-batches, so the nearest percent stands for that many.
uint32_t largest_share(int32_t cut, const nn::Graph& graph, const RunSize& size,
                       const api::SplitSpec& split) {
  const double may_go = 1 - split.min_server_percent / 100.0;
  const double most = std::floor(may_go / stem_part(graph, cut) * size.micro_batches + 1e-9);
  const auto away = std::min<uint32_t>(static_cast<uint32_t>(most), size.micro_batches);
  uint32_t percent = (100 * away + size.micro_batches - 1) / size.micro_batches;
  while (percent > 0 && stems_of_share(static_cast<int>(percent), size) > away) --percent;
  return percent;
}

/// What a plan that leaves the server too little could be instead; without a split it always fits.
std::string nearest_plan(const feed::Plan& plan, const nn::Graph& graph, const RunSize& size,
                         const api::SplitSpec& split) {
  const uint32_t largest = largest_share(plan.cut, graph, size, split);
  const auto bound = static_cast<int>(server_percent(plan, graph, size));
  std::string text =
      largest == 0
          ? "; no share of it fits; with minServerPercent: " + std::to_string(bound) + " it does"
          : "; with sharePercent: " + std::to_string(largest) + " it fits";
  std::string deepest;
  for (const nn::Cut& cut : graph.cuts()) {
    const feed::Plan other{.cut = cut.layers, .stems_away = plan.stems_away};
    if (cut.layers > 0 && cut.layers < plan.cut &&
        server_percent(other, graph, size) >= split.min_server_percent)
      deepest = cut.name;
  }
  if (!deepest.empty()) return text + ", or with the cut '" + deepest + "'";
  return largest == 0 ? text + ", or with cut: Input" : text;
}

/// The share of which a refusal speaks: where the job leaves it open, the least.
std::string share_text(const api::SplitSpec& split) {
  return split.share_percent ? "with sharePercent: " + std::to_string(*split.share_percent) + " "
                             : "with one stem of a step away ";
}

/// Throws where the plan leaves the server less than the job says.
void check_server_part(const feed::Plan& plan, const nn::Graph& graph, const RunSize& size,
                       const api::SplitSpec& split) {
  const double percent = server_percent(plan, graph, size);
  if (percent >= split.min_server_percent) return;
  throw InvalidInput("spec.split: " + share_text(split) + "the cut behind '" + plan.cut_name +
                     "' leaves " + std::to_string(static_cast<int>(percent)) +
                     " % of the multiply-adds on the server, minServerPercent is " +
                     std::to_string(split.min_server_percent) +
                     nearest_plan(plan, graph, size, split));
}

/// Throws where every cut that a planner may choose leaves the server less than the job says: the
/// run would stay at cut Input for ever.
void check_some_cut(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size) {
  const api::SplitSpec& split = job.spec.split;
  if (graph.cuts().size() < 2 || graph.cuts()[1].layers > deepest_cut(job, graph)) return;
  const nn::Cut& first = graph.cuts()[1];  // which takes the least off the server
  const uint32_t least = split.share_percent ? stems_of_share(*split.share_percent, size) : 1;
  const double percent = server_percent({.cut = first.layers, .stems_away = least}, graph, size);
  if (percent >= split.min_server_percent) return;
  const uint32_t share = largest_share(first.layers, graph, size, split);
  const std::string bound = std::to_string(static_cast<int>(percent));
  throw InvalidInput("spec.split: " + share_text(split) +
                     "no cut leaves the server enough of the multiply-adds: '" + first.name +
                     "' leaves the most, " + bound + " %, minServerPercent is " +
                     std::to_string(split.min_server_percent) +
                     "; with minServerPercent: " + bound + " it fits" +
                     (share == 0 ? "" : ", or with sharePercent: " + std::to_string(share)) +
                     "; cut: Input leaves all");
}

}  // namespace

feed::Plan make_plan(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size,
                     uint64_t number) {
  const auto& split = job.spec.split;
  feed::Plan plan;
  plan.number = number;
  if (split.cut != api::kCutAuto) plan.cut = graph.cut(split.cut).layers;
  complete_plan(plan, graph);
  // Until more is known nothing moves.
  if (split.max_bytes_per_second) plan.local_inputs = size.micro_batches;
  if (split.cut == api::kCutAuto) check_some_cut(job, graph, size);
  if (plan.cut == 0) return plan;
  if (plan.cut > last_cut(job, graph))
    throw InvalidInput("spec.split.cut: '" + plan.cut_name +
                       "' leaves the server no layer before the classifier, which partialFC shares "
                       "out over the ranks; write a layer before it");
  plan.stems_away = stems_of_share(split.share_percent.value_or(0), size);
  set_wires(plan, job);
  feed::Plan least = plan;  // of what may be found, where that is left open
  if (!split.share_percent) least.stems_away = 1;
  check_server_part(least, graph, size, split);
  return plan;
}

std::optional<std::string> share_advice(const api::TrainingJob& job, const RunSize& size) {
  const api::SplitSpec& split = job.spec.split;
  const int percent = split.share_percent.value_or(0);
  if (percent > 0 && split.cut == api::kCutInput)
    return "spec.split.sharePercent: " + std::to_string(percent) +
           " has no effect at cut: Input, where workers run no layers; cut: Auto or the name of a "
           "layer gives it some";
  if (percent == 0 || stems_of_share(percent, size) > 0) return std::nullopt;
  const auto least = static_cast<int>(std::ceil(50.0 / size.micro_batches));  // half of one
  return "spec.split.sharePercent: " + std::to_string(percent) + " of " +
         std::to_string(size.micro_batches) +
         " micro-batches is less than half of one, so no stem is away; " + std::to_string(least) +
         " is the least that moves one";
}

bool goes_on_from(const feed::Plan& plan, const api::TrainingJob& job, const nn::Graph& graph) {
  const std::string& cut = job.spec.split.cut;
  return wants_planner(job) && (cut == api::kCutAuto || graph.cut(cut).layers == plan.cut);
}

int32_t deepest_cut(const api::TrainingJob& job, const nn::Graph& graph) {
  const api::SplitSpec& split = job.spec.split;
  int32_t deepest = split.cut == api::kCutAuto ? 0 : graph.cut(split.cut).layers;
  // Half of the work is the server's, but where the job says that less will do.
  const int least = split.min_server_percent > 0 ? std::min(split.min_server_percent, 50) : 50;
  for (const nn::Cut& cut : graph.cuts()) {
    if (cut.layers <= last_cut(job, graph) && 100 * stem_part(graph, cut.layers) <= 100 - least)
      deepest = std::max(deepest, cut.layers);
  }
  return deepest;
}

}  // namespace outrigger::gpu_server
