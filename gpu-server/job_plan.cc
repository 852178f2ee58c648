#include "gpu-server/job_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "api/write.h"
#include "common/error.h"
#include "common/log.h"
#include "data/image_folder.h"
#include "data/web_dataset.h"
#include "nn/schedule.h"
#include "training/metrics.h"
#include "training/verification.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

nn::Schedule schedule_of(const api::Schedule& spec) {
  nn::Schedule schedule;
  std::visit(
      [&](const auto& one) {
        schedule.base = one.base;
        schedule.warmup_steps = one.warmup_steps;
      },
      spec);
  if (const auto* step = std::get_if<api::StepSchedule>(&spec)) {
    schedule.kind = nn::StepSchedule{.milestones = step->at_steps, .gamma = step->factor};
  } else if (const auto* cosine = std::get_if<api::CosineSchedule>(&spec)) {
    schedule.kind = nn::CosineSchedule{.least = cosine->final_rate};
  }
  return schedule;
}

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
  return size;
}

uint64_t step_synchronized_before(const api::TrainingJob& job, uint64_t step) {
  const uint64_t every = api::rank_count(job.spec) == 1
                             ? 1
                             : static_cast<uint64_t>(job.spec.training.sync_every_steps);
  return (step - 1) / every * every;
}

bool wants_planner(const api::TrainingJob& job) {
  const api::SplitSpec& split = job.spec.split;
  return split.cut == api::kCutAuto || (split.cut != api::kCutInput && !split.share_percent);
}

void complete_plan(feed::Plan& plan, const nn::Graph& graph) {
  plan.cut_name = graph.cut_at(plan.cut).name;
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

/// Of the network's multiply-adds.
double stem_part(const nn::Graph& graph, int32_t cut) {
  return static_cast<double>(graph.multiply_adds({0, cut})) /
         static_cast<double>(graph.multiply_adds(graph.whole()));
}

/// Likewise what a plan leaves the server.
double server_percent(const feed::Plan& plan, const nn::Graph& graph, const RunSize& size) {
  return 100 * (1 - stem_part(graph, plan.cut) * plan.stems_away / size.micro_batches);
}

/// The largest share of a cut that leaves the server its part, in percent; 0: there is none.
uint32_t largest_share(int32_t cut, const nn::Graph& graph, const RunSize& size,
                       const api::SplitSpec& split) {
  const double may_go = 1 - split.min_server_percent / 100.0;
  const double most = std::floor(may_go / stem_part(graph, cut) * size.micro_batches + 1e-9);
  return 100 * static_cast<uint32_t>(most) / size.micro_batches;
}

/// What a plan that leaves the server too little could be instead.
std::string nearest_plan(const feed::Plan& plan, const nn::Graph& graph, const RunSize& size,
                         const api::SplitSpec& split) {
  const uint32_t largest = largest_share(plan.cut, graph, size, split);
  std::string text = largest == 0 ? "; no share of it fits"
                                  : "; with sharePercent: " + std::to_string(largest) + " it fits";
  std::string deepest;
  for (const nn::Cut& cut : graph.cuts()) {
    const feed::Plan other{.cut = cut.layers, .stems_away = plan.stems_away};
    if (cut.layers > 0 && cut.layers < plan.cut &&
        server_percent(other, graph, size) >= split.min_server_percent)
      deepest = cut.name;
  }
  return deepest.empty() ? text : text + ", or with the cut '" + deepest + "'";
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
                     (share == 0 ? "" : ", or with sharePercent: " + std::to_string(share)));
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
  const int percent = split.cut == api::kCutInput ? 0 : split.share_percent.value_or(0);
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
  int32_t deepest = job.spec.split.cut == api::kCutAuto ? 0 : graph.cut(job.spec.split.cut).layers;
  for (const nn::Cut& cut : graph.cuts()) {
    if (cut.layers <= last_cut(job, graph) &&
        2 * graph.multiply_adds({0, cut.layers}) <= graph.multiply_adds(graph.whole()))
      deepest = std::max(deepest, cut.layers);
  }
  return deepest;
}

data::Dataset list_data(const api::DataSource& source, const std::filesystem::path& root,
                        const std::vector<std::string>& classes) {
  if (source.format == api::DataFormat::kWebDataset)
    return data::list_web_dataset(root, "", classes);
  data::ListOptions options;
  options.classes = classes;
  return data::list_image_folder(root, options);
}

void check_lists(const api::TrainingJob& job, const data::Dataset& train,
                 const data::Dataset& validation) {
  std::vector<uint32_t> images(train.classes().size());
  for (uint32_t i = 0; i < train.size(); ++i) ++images.at(static_cast<size_t>(train.label(i)));
  const auto lonely = std::ranges::find(images, 1u);
  if (lonely != images.end()) {
    log::warning(
        "{} of {} classes has one image only, among them \"{}\": little can be learnt of it",
        std::ranges::count(images, 1u), images.size(),
        train.classes()[static_cast<size_t>(lonely - images.begin())]);
  }
  const auto& evaluate = job.spec.training.evaluate;
  if (!evaluate || validation.size() == 0) return;
  std::vector<int32_t> labels(validation.size());
  for (uint32_t i = 0; i < validation.size(); ++i) labels[i] = validation.label(i);
  if (evaluate->metric == api::EvaluationMetric::kVerification) {
    try {
      static_cast<void>(training::draw_pairs(labels));
    } catch (const InvalidInput& error) {
      throw InvalidInput(
          "spec.training.evaluate.metric: Verification cannot be measured on "
          "spec.data.validation: " +
          std::string(error.what()));
    }
  }
  if (evaluate->metric == api::EvaluationMetric::kIdentification &&
      training::split_gallery(labels).probes.empty()) {
    throw InvalidInput(
        "spec.training.evaluate.metric: Identification cannot be measured on spec.data.validation: "
        "every class has one image, and it is looked for among the others of its class");
  }
}

feed::OrderOptions order_options(const api::TrainingJob& job, const data::Dataset& train) {
  feed::OrderOptions options;
  options.seed = worker::seed(job);
  options.samples = train.size();
  if (job.spec.data.sampling == api::Sampling::kClassBalanced) {
    options.sampling = feed::Sampling::kClassBalanced;
    for (uint32_t i = 0; i < train.size(); ++i) options.labels.push_back(train.label(i));
  }
  if (job.spec.data.shuffle) {
    options.window =
        static_cast<uint32_t>(std::min<int64_t>(job.spec.data.shuffle->window, train.size()));
    options.block_starts.assign(train.block_starts().begin(), train.block_starts().end());
  }
  return options;
}

training::ModelCard model_card(const api::TrainingJob& job, std::vector<std::string> classes) {
  training::ModelCard card;
  const auto count = static_cast<int64_t>(classes.size());
  card.classes = std::move(classes);
  if (job.spec.model.name) {
    card.model = worker::model_options(job, count);
    return card;
  }
  card.job = api::to_json_text(job);
  card.model.height = job.spec.data.image.height;
  card.model.width = job.spec.data.image.width;
  card.model.channels = job.spec.data.image.channels;
  card.model.classes = count;
  return card;
}

training::TrainerOptions trainer_options(const api::TrainingJob& job, const nn::Graph& graph,
                                         const RunSize& size, nn::Precision precision) {
  const auto& training = job.spec.training;
  training::TrainerOptions options;
  options.device = {
      .micro_batch = worker::micro_batch(job), .precision = precision, .seed = worker::seed(job)};
  if (const auto* loss = std::get_if<api::SoftmaxCrossEntropy>(&training.loss)) {
    options.device.label_smoothing = static_cast<float>(loss->label_smoothing);
  }
  const auto* arcface = std::get_if<api::ArcFace>(&training.loss);
  if (arcface != nullptr && arcface->partial_fc)
    options.partial_fc = {.sample_rate = arcface->partial_fc->sample_rate};
  options.micro_batches = size.micro_batches;
  options.rank_limit = job.spec.progress_deadline;  // rank 0 evaluates and saves while others wait
  options.staleness = static_cast<uint64_t>(training.staleness);
  options.sync_every = static_cast<uint64_t>(training.sync_every_steps);
  options.bfloat16_all_reduce = training.all_reduce_precision == api::AllReducePrecision::kBFloat16;
  options.total_steps = size.total_steps;
  options.most_stem_parameters =
      static_cast<uint64_t>(graph.parameter_range({0, deepest_cut(job, graph)}).size);
  const auto& sgd = std::get<api::Sgd>(training.optimizer);
  options.optimizer = {.momentum = static_cast<float>(sgd.momentum),
                       .nesterov = sgd.nesterov,
                       .weight_decay = static_cast<float>(sgd.weight_decay),
                       .decay_norm_and_bias = sgd.decay_norm_and_bias};
  options.learning_rate = [schedule = schedule_of(training.schedule),
                           total = size.total_steps](uint64_t step) {
    return nn::learning_rate(schedule, static_cast<int64_t>(step), static_cast<int64_t>(total));
  };
  options.clip_gradient_norm = training.clip_gradient_norm;
  if (training.average_weights)
    options.average_decay = static_cast<float>(*training.average_weights);
  return options;
}

}  // namespace outrigger::gpu_server
