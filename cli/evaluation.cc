#include "cli/evaluation.h"

#include <unordered_map>
#include <vector>

#include "common/error.h"
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

double top1_of(const TrainedModel& model, const EvaluatedSet& set) {
  if (!model.has_head()) throw InvalidInput("the weights have no classifier that is known here");
  if (model.card.classes.empty()) throw InvalidInput("the weights do not name their classes");
  const std::vector<int32_t> label_in_model = relabel(set.dataset.classes(), model.card.classes);
  std::vector<int32_t> labels = labels_of(set);
  for (int32_t& label : labels) {
    const auto& name = set.dataset.classes()[static_cast<size_t>(label)];
    label = label_in_model[static_cast<size_t>(label)];
    if (label < 0) throw InvalidInput("the model was not trained on '" + name + "'");
  }
  return training::top1({set.outputs.logits, set.outputs.classes, labels});
}

Identification identify(const EvaluatedSet& probes, const std::optional<EvaluatedSet>& gallery) {
  const std::vector<int32_t> asked = labels_of(probes);
  const LabelledRows rows{probes.outputs.embeddings, probes.outputs.features, asked};
  if (gallery) {
    // One numbering for both: the gallery's, and -1 for who is not in it, so never found.
    const auto label_in_gallery = relabel(probes.dataset.classes(), gallery->dataset.classes());
    std::vector<int32_t> renamed;
    for (const int32_t label : asked)
      renamed.push_back(label_in_gallery[static_cast<size_t>(label)]);
    const std::vector<int32_t> known = labels_of(*gallery);
    const LabelledRows known_rows{gallery->outputs.embeddings, gallery->outputs.features, known};
    return {training::rank1(known_rows, {rows.values, rows.features, renamed}), known_rows.count(),
            rows.count()};
  }
  const training::GallerySplit split = training::split_gallery(asked);
  if (split.probes.empty()) throw InvalidInput("nobody has two photos");
  return {training::rank1(rows, split), static_cast<int64_t>(split.gallery.size()),
          static_cast<int64_t>(split.probes.size())};
}

}  // namespace

Evaluation evaluate_outputs(const TrainedModel& model, const EvaluatedSet& probes,
                            const std::optional<EvaluatedSet>& gallery,
                            const training::PairOptions& pairs) {
  const std::vector<int32_t> labels = labels_of(probes);
  const LabelledRows rows{probes.outputs.embeddings, probes.outputs.features, labels};
  Evaluation result;
  result.images = rows.count();
  result.people = static_cast<int64_t>(probes.dataset.classes().size());
  result.broken = static_cast<int64_t>(probes.outputs.broken.size());
  result.top1 = measure<double>([&] { return top1_of(model, probes); });
  result.verification = measure<training::Verification>(
      [&] { return training::verify(rows, training::draw_pairs(labels, pairs), pairs.folds); });
  result.identification = measure<Identification>([&] { return identify(probes, gallery); });
  return result;
}

}  // namespace outrigger::cli
