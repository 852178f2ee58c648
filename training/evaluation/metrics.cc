#include "training/evaluation/metrics.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "common/error.h"

namespace outrigger::training {

double top1(const LabelledRows& logits) {
  check_rows(logits);
  int64_t correct = 0;
  for (int64_t i = 0; i < logits.count(); ++i) {
    const int32_t label = logits.labels[static_cast<size_t>(i)];
    if (label < 0 || label >= logits.features) {
      throw InvalidInput("label " + std::to_string(label) + " of row " + std::to_string(i) +
                         ": the model knows 0 to " + std::to_string(logits.features - 1));
    }
    const auto row = logits.row(i);
    correct += std::max_element(row.begin(), row.end()) - row.begin() == label;
  }
  return logits.count() == 0 ? 0.0
                             : static_cast<double>(correct) / static_cast<double>(logits.count());
}

GallerySplit split_gallery(std::span<const int32_t> labels, int per_person) {
  GallerySplit split;
  std::unordered_map<int32_t, int> seen;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool known = seen[labels[i]]++ >= per_person;
    (known ? split.probes : split.gallery).push_back(static_cast<int64_t>(i));
  }
  return split;
}

double rank1(const LabelledRows& gallery, const LabelledRows& probes) {
  check_rows(gallery);
  check_rows(probes);
  if (gallery.features != probes.features) {
    throw InvalidInput("gallery of " + std::to_string(gallery.features) +
                       " features against probes of " + std::to_string(probes.features));
  }
  const std::vector<float> known = normalized(gallery.values, gallery.features);
  const std::vector<float> asked = normalized(probes.values, probes.features);
  const LabelledRows known_rows{known, gallery.features, gallery.labels};
  const LabelledRows asked_rows{asked, probes.features, probes.labels};
  int64_t correct = 0;
  for (int64_t i = 0; i < probes.count() && gallery.count() > 0; ++i) {
    int64_t nearest = 0;
    float best = -2;  // below every cosine
    for (int64_t j = 0; j < gallery.count(); ++j) {
      const float cosine = dot(asked_rows.row(i), known_rows.row(j));
      if (cosine > best) {
        best = cosine;
        nearest = j;
      }
    }
    correct +=
        gallery.labels[static_cast<size_t>(nearest)] == probes.labels[static_cast<size_t>(i)];
  }
  return probes.count() == 0 ? 0.0
                             : static_cast<double>(correct) / static_cast<double>(probes.count());
}

double rank1(const LabelledRows& embeddings, const GallerySplit& split) {
  check_rows(embeddings);
  const auto pick = [&](std::span<const int64_t> rows, std::vector<float>& values,
                        std::vector<int32_t>& labels) {
    for (const int64_t row : rows) {
      const auto source = embeddings.row(row);
      values.insert(values.end(), source.begin(), source.end());
      labels.push_back(embeddings.labels[static_cast<size_t>(row)]);
    }
    return LabelledRows{values, embeddings.features, labels};
  };
  std::vector<float> gallery_values, probe_values;
  std::vector<int32_t> gallery_labels, probe_labels;
  return rank1(pick(split.gallery, gallery_values, gallery_labels),
               pick(split.probes, probe_values, probe_labels));
}

}  // namespace outrigger::training
