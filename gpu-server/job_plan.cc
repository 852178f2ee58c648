#include "gpu-server/job_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "api/write.h"
#include "common/error.h"
#include "data/image_folder.h"
#include "data/web_dataset.h"
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

feed::WireFormat wire_of(api::WireFormat format, nn::Precision precision) {
  switch (format) {
    case api::WireFormat::kFloat32:
      return feed::WireFormat::kFloat32;
    case api::WireFormat::kBFloat16:
      return feed::WireFormat::kBFloat16;
    case api::WireFormat::kInt8:
      return feed::WireFormat::kInt8;
    case api::WireFormat::kAuto:
      break;
  }
  // Auto never goes below the job's precision.
  return precision == nn::Precision::kBFloat16 ? feed::WireFormat::kBFloat16
                                               : feed::WireFormat::kFloat32;
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

feed::Plan first_plan(const api::TrainingJob& job, const nn::Graph& graph, const RunSize& size) {
  const auto& split = job.spec.split;
  feed::Plan plan;
  plan.number = 1;
  const nn::Cut& cut = graph.cut(split.cut);
  plan.cut = cut.layers;
  plan.cut_name = cut.name;
  if (cut.layers == 0) return plan;
  const double share = split.share_percent.value_or(100) / 100.0;
  plan.stems_away = static_cast<uint32_t>(std::lround(share * size.micro_batches));
  plan.stem_trains = !graph.frozen_before(cut.layers);
  plan.stem_parameters = static_cast<uint64_t>(graph.parameter_range({0, cut.layers}).size);
  plan.stem_buffers = static_cast<uint64_t>(graph.buffer_range({0, cut.layers}).size);
  plan.activations = wire_of(split.wire.activations, worker::precision(job));
  plan.gradients = wire_of(split.wire.gradients, worker::precision(job));
  const auto all = static_cast<double>(graph.multiply_adds(graph.whole()));
  const auto away = static_cast<double>(graph.multiply_adds({0, cut.layers})) * plan.stems_away /
                    size.micro_batches;
  if (100.0 * (1.0 - away / all) < split.min_server_percent) {
    throw InvalidInput("spec.split: the cut behind '" + cut.name + "' leaves " +
                       std::to_string(static_cast<int>(100.0 * (1.0 - away / all))) +
                       " % of the multiply-adds on the server, minServerPercent is " +
                       std::to_string(split.min_server_percent));
  }
  return plan;
}

int32_t deepest_cut(const api::TrainingJob& job, const nn::Graph& graph) {
  return graph.cut(job.spec.split.cut).layers;
}

data::Dataset list_data(const api::DataSource& source, const std::filesystem::path& root,
                        const std::vector<std::string>& classes) {
  if (source.format == api::DataFormat::kWebDataset)
    return data::list_web_dataset(root, "", classes);
  data::ListOptions options;
  options.classes = classes;
  return data::list_image_folder(root, options);
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
    options.window = static_cast<uint32_t>(job.spec.data.shuffle->window);
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

training::TrainerOptions trainer_options(const api::TrainingJob& job, const RunSize& size) {
  const auto& training = job.spec.training;
  training::TrainerOptions options;
  options.device = {.micro_batch = worker::micro_batch(job),
                    .precision = worker::precision(job),
                    .seed = worker::seed(job)};
  if (const auto* loss = std::get_if<api::SoftmaxCrossEntropy>(&training.loss)) {
    options.device.label_smoothing = static_cast<float>(loss->label_smoothing);
  }
  options.micro_batches = size.micro_batches;
  options.staleness = static_cast<uint64_t>(training.staleness);
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
