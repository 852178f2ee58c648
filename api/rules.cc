#include "api/rules.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include "api/names.h"
#include "api/schema/scalar.h"

namespace outrigger::api {
namespace {

using schema::format_number;
using schema::in_quotes;

/// Adds errors with paths below one object.
class Faults {
 public:
  Faults(std::vector<FieldError>& errors, std::string base)
      : errors_(errors), base_(std::move(base)) {}

  void add(const std::string& field, std::string message) {
    errors_.push_back({field.empty() ? base_ : base_ + "." + field, std::move(message)});
  }

  /// Exactly one of some fields is to be given.
  void expect_one(std::initializer_list<std::pair<const char*, bool>> given) {
    const auto count =
        std::count_if(given.begin(), given.end(), [](const auto& field) { return field.second; });
    if (count == 1) return;
    std::string names;
    for (const auto& field : given) names += (names.empty() ? "" : ", ") + std::string(field.first);
    add("", std::to_string(count) + " given of which exactly one is needed: " + names);
  }

  template <typename T>
  void expect_order(const char* low, T low_value, const char* high, T high_value) {
    if (low_value <= high_value) return;
    add(low, format_number(static_cast<double>(low_value)) + " is too large; at most " + high +
                 ", which is " + format_number(static_cast<double>(high_value)));
  }

  void expect_least(const char* field, double value, double least) {
    if (value >= least) return;
    add(field, format_number(value) + " is too small; at least " + format_number(least));
  }
  void expect_most(const char* field, double value, double most) {
    if (value <= most) return;
    add(field, format_number(value) + " is too large; at most " + format_number(most));
  }

 private:
  std::vector<FieldError>& errors_;
  std::string base_;
};

std::string item(const std::string& list, size_t i) { return list + "[" + std::to_string(i) + "]"; }

void check_layer(const LayerSpec& layer, const std::set<std::string>& before, Faults faults) {
  if (before.count(layer.name) > 0)
    faults.add("name", in_quotes(layer.name) + " is the name of a layer before it");
  const bool sum = std::holds_alternative<AddLayer>(layer.kind);
  if (sum && layer.inputs.size() != 2) {
    faults.add("inputs",
               std::to_string(layer.inputs.size()) + " given; an add layer needs exactly 2 inputs");
  }
  if (!sum && layer.inputs.size() > 1) {
    faults.add("inputs", std::to_string(layer.inputs.size()) +
                             " inputs are too many; only an add layer has several");
  }
}

void check_model(const ModelSpec& model, std::vector<FieldError>& errors) {
  Faults faults(errors, "spec.model");
  faults.expect_one({{"name", model.name.has_value()}, {"layers", !model.layers.empty()}});
  if (model.replace_head && !model.weights) {
    faults.add("replaceHead",
               "true needs weights: without them the classifier starts anew in any case");
  }
  std::set<std::string> before{"input"};
  for (size_t i = 0; i < model.layers.size(); ++i) {
    check_layer(model.layers[i], before, Faults(errors, item("spec.model.layers", i)));
    before.insert(model.layers[i].name);
  }
}

// What the pixel code takes (data/pixels/steps.cc). Not the fields' own bounds, which were released
// wider than that.
constexpr double kLeastBoxArea = 0.0001, kLeastBoxRatio = 0.1, kMostBoxRatio = 10;

void check_augmentation(const Augmentation& step, Faults faults) {
  if (const auto* crop = std::get_if<RandomResizedCrop>(&step)) {
    faults.expect_least("randomResizedCrop.minScale", crop->min_scale, kLeastBoxArea);
    faults.expect_least("randomResizedCrop.minRatio", crop->min_ratio, kLeastBoxRatio);
    faults.expect_most("randomResizedCrop.maxRatio", crop->max_ratio, kMostBoxRatio);
    faults.expect_order("randomResizedCrop.minScale", crop->min_scale, "maxScale", crop->max_scale);
    faults.expect_order("randomResizedCrop.minRatio", crop->min_ratio, "maxRatio", crop->max_ratio);
  }
  if (const auto* erasing = std::get_if<RandomErasing>(&step)) {
    faults.expect_least("randomErasing.minArea", erasing->min_area, kLeastBoxArea);
    faults.expect_least("randomErasing.minRatio", erasing->min_ratio, kLeastBoxRatio);
    faults.expect_most("randomErasing.maxRatio", erasing->max_ratio, kMostBoxRatio);
    faults.expect_order("randomErasing.minArea", erasing->min_area, "maxArea", erasing->max_area);
    faults.expect_order("randomErasing.minRatio", erasing->min_ratio, "maxRatio",
                        erasing->max_ratio);
  }
}

bool lies_below(const std::string& path, std::string_view folder) {
  return path == folder || path.compare(0, folder.size() + 1, std::string(folder) + "/") == 0;
}

void check_source(const DataSource& source, bool has_claim, Faults faults) {
  faults.expect_one({{"path", source.path.has_value()}, {"urls", !source.urls.empty()}});
  if (!source.urls.empty() && source.format != DataFormat::kWebDataset) {
    faults.add("urls", "only format WebDataset is read from addresses; this is ImageFolder");
  }
  if (has_claim && source.path && !lies_below(*source.path, kDataMountPath)) {
    faults.add("path", in_quotes(*source.path) +
                           " is not on the volume; data.volumeClaimName is mounted at " +
                           std::string(kDataMountPath));
  }
}

void check_data(const DataSpec& data, std::vector<FieldError>& errors) {
  Faults faults(errors, "spec.data");
  const bool has_claim = data.volume_claim_name.has_value();
  check_source(data.train, has_claim, Faults(errors, "spec.data.train"));
  if (data.validation)
    check_source(*data.validation, has_claim, Faults(errors, "spec.data.validation"));
  if (data.sampling == Sampling::kClassBalanced && data.shuffle) {
    faults.add("shuffle",
               "sampling ClassBalanced draws every sample anew and has no use for it; "
               "leave one of the two out");
  }
  if (data.image.channels == 2)
    faults.add("image.channels", "2 is not allowed; 1 (grey) or 3 (colour)");
  for (size_t i = 0; i < data.augment.size(); ++i) {
    check_augmentation(data.augment[i], Faults(errors, item("spec.data.augment", i)));
  }
}

void check_batch(const TrainingJobSpec& spec, Faults& faults) {
  const int ranks = rank_count(spec);
  const int batch = spec.training.batch_size;
  if (batch % ranks != 0) {
    faults.add("batchSize", std::to_string(batch) + " is not a multiple of the " +
                                std::to_string(ranks) +
                                " ranks (server.replicas x max(1, server.gpus))");
    return;
  }
  const int64_t micro = spec.training.micro_batch_size.value_or(1);
  if (batch % (ranks * micro) == 0) return;
  faults.add("batchSize", std::to_string(batch) +
                              " is not a multiple of ranks x microBatchSize, which is " +
                              std::to_string(ranks) + " x " + std::to_string(micro));
}

void check_schedule(const Schedule& schedule, Faults& faults) {
  if (const auto* step = std::get_if<StepSchedule>(&schedule)) {
    if (step->at_steps.empty())
      faults.add("schedule.step.atSteps", "an empty list; at least one step is needed");
    const auto& steps = step->at_steps;
    if (std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) != steps.end()) {
      faults.add("schedule.step.atSteps", "the steps are not ascending");
    }
  }
  if (const auto* cosine = std::get_if<CosineSchedule>(&schedule)) {
    faults.expect_order("schedule.cosine.final", cosine->final_rate, "base", cosine->base);
  }
}

void check_training(const TrainingJobSpec& spec, std::vector<FieldError>& errors) {
  const TrainingSpec& training = spec.training;
  Faults faults(errors, "spec.training");
  faults.expect_one(
      {{"epochs", training.epochs.has_value()}, {"steps", training.steps.has_value()}});
  check_batch(spec, faults);
  check_schedule(training.schedule, faults);
  const auto& sgd = std::get<Sgd>(training.optimizer);
  if (sgd.nesterov && sgd.momentum == 0)
    faults.add("optimizer.sgd.nesterov", "true needs momentum above 0");
  if (training.evaluate && !spec.data.validation) {
    faults.add("evaluate", "there is nothing to evaluate on; give data.validation");
  }
  if (training.evaluate && training.evaluate->stop_after_no_gain &&
      training.evaluate->place == EvaluationPlace::kWorkers) {
    faults.add("evaluate.place",
               "Workers cannot be with stopAfterNoGain: results that come later would end each run "
               "at another step");
  }
}

void check_split(const SplitSpec& split, std::vector<FieldError>& errors) {
  const bool fixed = split.cut == kCutInput || (split.cut != kCutAuto && split.share_percent);
  if (split.max_bytes_per_second && fixed)
    Faults(errors, "spec.split")
        .add("maxBytesPerSecond",
             "bounds plans that are found, and there is nothing to find; write cut: Auto, or a "
             "layer "
             "without sharePercent");
}

void check_workers(const WorkersSpec& workers, std::vector<FieldError>& errors) {
  Faults faults(errors, "spec.workers");
  faults.expect_order("minReplicas", workers.min_replicas, "replicas", workers.replicas);
  if (workers.max_replicas) {
    faults.expect_order("replicas", workers.replicas, "maxReplicas", *workers.max_replicas);
  } else if (workers.autoscaling) {
    faults.add("autoscaling", "needs maxReplicas, so that the number of workers has a bound");
  }
}

void check_texts(const nlohmann::json& metadata, const char* member, Faults& faults) {
  const auto texts = metadata.find(member);
  if (texts == metadata.end()) return;
  const std::string path = "metadata." + std::string(member);
  if (!texts->is_object()) return faults.add(path, "an object of texts is needed");
  for (const auto& [name, text] : texts->items()) {
    if (!text.is_string()) faults.add(std::string(path).append(".").append(name), "text is needed");
  }
}

// What pods may be asked for in spec is the cluster's to judge.
void check_template(const std::optional<nlohmann::json>& pod_template, Faults faults) {
  if (!pod_template) return;
  for (const auto& [name, member] : pod_template->items()) {
    if (name != "metadata" && name != "spec") {
      faults.add(name, "unknown field; allowed here: metadata, spec");
    } else if (name == "metadata" && !member.is_object()) {
      faults.add(name, "an object is needed");
    }
  }
  const auto metadata = pod_template->find("metadata");
  if (metadata == pod_template->end() || !metadata->is_object()) return;
  for (const auto& [name, member] : metadata->items()) {
    if (name != "labels" && name != "annotations")
      faults.add("metadata." + name, "unknown field; allowed here: labels, annotations");
  }
  check_texts(*metadata, "labels", faults);
  check_texts(*metadata, "annotations", faults);
}

void check_mount(const std::optional<std::string>& claim, const std::optional<std::string>& path,
                 Faults faults) {
  if (!claim) return;
  if (!path) return faults.add("volumeClaimName", "needs path, where the volume is mounted");
  if (path->front() != '/') {
    faults.add("path",
               in_quotes(*path) + " is relative; a volume is mounted at a path that begins with /");
  }
}

void check_failure_policy(const FailurePolicy& policy, std::vector<FieldError>& errors) {
  std::set<std::string> names;
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const FailureRule& rule = policy.rules[i];
    Faults faults(errors, item("spec.failurePolicy.rules", i));
    faults.expect_one({{"onExitCodes", !rule.on_exit_codes.empty()},
                       {"onPodConditions", !rule.on_pod_conditions.empty()},
                       {"onReasons", !rule.on_reasons.empty()}});
    if (!names.insert(rule.name).second)
      faults.add("name", in_quotes(rule.name) + " is the name of a rule before it");
    if (rule.action == FailureAction::kReplacePod && rule.role != Role::kWorker) {
      faults.add("action", "ReplacePod needs role Worker; servers restart together");
    }
  }
}

}  // namespace

void check_rules(const TrainingJob& job, std::vector<FieldError>& errors) {
  const TrainingJobSpec& spec = job.spec;
  check_model(spec.model, errors);
  check_data(spec.data, errors);
  check_training(spec, errors);
  check_split(spec.split, errors);
  check_workers(spec.workers, errors);
  check_template(spec.server.pod_template, Faults(errors, "spec.server.template"));
  check_template(spec.workers.pod_template, Faults(errors, "spec.workers.template"));
  check_mount(spec.output.volume_claim_name, spec.output.path, Faults(errors, "spec.output"));
  check_mount(spec.checkpoint.volume_claim_name, spec.checkpoint.path,
              Faults(errors, "spec.checkpoint"));
  check_failure_policy(spec.failure_policy, errors);
}

}  // namespace outrigger::api
