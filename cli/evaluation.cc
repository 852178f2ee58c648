#include "cli/evaluation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cli/output.h"
#include "common/error.h"
#include "common/log.h"
#include "training/evaluation/metrics.h"

namespace outrigger::cli {
namespace {

using training::LabelledRows;

/// Labels of the rows, as the data set counts people.
std::vector<int32_t> labels_of(const EvaluatedSet& set) {
  std::vector<int32_t> labels;
  for (const size_t image : set.outputs.images)
    labels.push_back(set.dataset.label(static_cast<uint32_t>(image)));
  return labels;
}

/// Shards name numbers that have no photo as well.
int64_t count_people(const data::Dataset& dataset) {
  std::unordered_set<int32_t> people;
  for (uint32_t i = 0; i < dataset.size(); ++i) people.insert(dataset.label(i));
  return static_cast<int64_t>(people.size());
}

/// The label that `names` gives each of the set's classes; -1 for a class that it lacks.
std::vector<int32_t> relabel(const std::vector<std::string>& classes,
                             const std::vector<std::string>& names) {
  std::unordered_map<std::string, int32_t> label_of;
  for (size_t i = 0; i < names.size(); ++i) label_of.emplace(names[i], static_cast<int32_t>(i));
  std::vector<int32_t> labels;
  for (const std::string& name : classes) {
    const auto found = label_of.find(name);
    labels.push_back(found == label_of.end() ? -1 : found->second);
  }
  return labels;
}

template <typename T, typename Work>
Measure<T> measure(const Work& work) {
  try {
    return {work(), ""};
  } catch (const InvalidInput& error) {
    return {std::nullopt, error.what()};
  }
}

/// As a model's file has them.
std::vector<std::string> as_written(const std::vector<std::string>& names) {
  return nlohmann::json::parse(json_text(nlohmann::json(names))).get<std::vector<std::string>>();
}

/// Throws InvalidInput where two of `whose` classes have one name, and it is one that is asked for.
void refuse_shared_names(const std::vector<std::string>& names,
                         const std::unordered_set<std::string>& asked, const std::string& whose) {
  std::unordered_set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second && asked.contains(name))
      throw InvalidInput(
          fmt::format("two of {} are called '{}' once what is not UTF-8 in their names is replaced",
                      whose, name));
  }
}

std::vector<int32_t> find_labels(const TrainedModel& model, const data::Dataset& dataset) {
  if (!model.has_head()) throw InvalidInput("the weights have no classifier that is known here");
  if (model.card.classes.empty()) throw InvalidInput("the weights do not name their classes");
  const std::vector<std::string> names = as_written(dataset.classes());
  const std::unordered_set<std::string> asked(names.begin(), names.end());
  refuse_shared_names(names, asked, "the people");
  refuse_shared_names(model.card.classes, asked, "the people that the model was trained on");
  std::vector<int32_t> labels = relabel(names, model.card.classes);
  const auto unknown = std::ranges::find(labels, -1);
  if (unknown != labels.end())
    throw InvalidInput("the model was not trained on '" +
                       names[static_cast<size_t>(unknown - labels.begin())] + "'");
  return labels;
}

double top1_of(const EvaluatedSet& set, const std::vector<int32_t>& label_in_model) {
  const std::vector<int32_t> labels = labels_of(set);
  ensure(set.outputs.named.size() == labels.size(), "the head was run where top-1 is asked for");
  int64_t right = 0;
  for (size_t row = 0; row < labels.size(); ++row)
    right += set.outputs.named[row] == label_in_model[static_cast<size_t>(labels[row])];
  return labels.empty() ? 0 : static_cast<double>(right) / static_cast<double>(labels.size());
}

Measure<double> measure_top1(const TrainedModel& model, const EvaluatedSet& set) {
  const auto labels = labels_in_model(model, set.dataset);
  if (!labels.value) return {std::nullopt, labels.why_not};
  return {top1_of(set, *labels.value), ""};
}

/// Looks for the probes' people in the gallery by their names.
Identification identify_in(const EvaluatedSet& gallery, const EvaluatedSet& probes) {
  // One numbering for both: the gallery's.
  const auto label_in_gallery = relabel(probes.dataset.classes(), gallery.dataset.classes());
  const std::vector<int32_t> known = labels_of(gallery);
  const std::unordered_set<int32_t> people(known.begin(), known.end());
  const std::vector<int32_t> asked = labels_of(probes);
  const LabelledRows all{probes.outputs.embeddings, probes.outputs.features, asked};
  std::vector<float> values;
  std::vector<int32_t> labels;
  for (int64_t row = 0; row < all.count(); ++row) {
    const auto person = static_cast<size_t>(asked[static_cast<size_t>(row)]);
    const int32_t label = label_in_gallery[person];
    if (!people.contains(label)) continue;
    values.insert(values.end(), all.row(row).begin(), all.row(row).end());
    labels.push_back(label);
  }
  if (labels.empty())
    throw InvalidInput(
        fmt::format("the gallery has no photo of anybody in the {} photos; people "
                    "are compared by their folders' names",
                    asked.size()));
  const LabelledRows rows{values, all.features, labels};
  const LabelledRows known_rows{gallery.outputs.embeddings, gallery.outputs.features, known};
  return {training::rank1(known_rows, rows), known_rows.count(), rows.count(),
          all.count() - rows.count()};
}

Identification identify(const EvaluatedSet& probes, const std::optional<EvaluatedSet>& gallery) {
  if (gallery) return identify_in(*gallery, probes);
  const std::vector<int32_t> asked = labels_of(probes);
  const LabelledRows rows{probes.outputs.embeddings, probes.outputs.features, asked};
  const training::GallerySplit split = training::split_gallery(asked);
  if (split.probes.empty()) throw InvalidInput("nobody has two photos");
  return {training::rank1(rows, split), static_cast<int64_t>(split.gallery.size()),
          static_cast<int64_t>(split.probes.size()), 0};
}

}  // namespace

Measure<std::vector<int32_t>> labels_in_model(const TrainedModel& model,
                                              const data::Dataset& dataset) {
  return measure<std::vector<int32_t>>([&] { return find_labels(model, dataset); });
}

Evaluation evaluate_outputs(const TrainedModel& model, const EvaluatedSet& probes,
                            const std::optional<EvaluatedSet>& gallery,
                            const training::PairOptions& pairs) {
  const std::vector<int32_t> labels = labels_of(probes);
  const LabelledRows rows{probes.outputs.embeddings, probes.outputs.features, labels};
  Evaluation result;
  result.images = rows.count();
  result.people = count_people(probes.dataset);
  result.broken = static_cast<int64_t>(probes.outputs.broken.size());
  result.top1 = measure_top1(model, probes);
  result.verification = measure<training::Verification>(
      [&] { return training::verify(rows, training::draw_pairs(labels, pairs), pairs.folds); });
  result.identification = measure<Identification>([&] { return identify(probes, gallery); });
  return result;
}

}  // namespace outrigger::cli
