#include "gpu-server/job/job_options.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "api/write.h"
#include "nn/schedule.h"
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

}  // namespace

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
