#include "training/evaluation/metrics.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

#include "common/error.h"

namespace outrigger::training {
namespace {

// As many rows of some hundred features as stay in a core's cache.
constexpr int64_t kBlockRows = 64;

/// How many of a block of probes, from `first`, find their label. Rows are of length 1.
int64_t count_identified(const LabelledRows& gallery, const LabelledRows& probes, int64_t first) {
  struct Nearest {
    int64_t row = 0;
    float cosine = -2;  // below every cosine
  };
  Nearest nearest[kBlockRows];
  const int64_t count = std::min(kBlockRows, probes.count() - first);
  for (int64_t begin = 0; begin < gallery.count(); begin += kBlockRows) {
    const int64_t end = std::min(gallery.count(), begin + kBlockRows);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t row = begin; row < end; ++row) {
        const float cosine = dot(probes.row(first + i), gallery.row(row));
        if (cosine > nearest[i].cosine) nearest[i] = {row, cosine};
      }
    }
  }
  int64_t identified = 0;
  for (int64_t i = 0; i < count; ++i) {
    identified += gallery.labels[static_cast<size_t>(nearest[i].row)] ==
                  probes.labels[static_cast<size_t>(first + i)];
  }
  return identified;
}

}  // namespace

GallerySplit split_gallery(std::span<const int32_t> labels, int per_person) {
  GallerySplit split;
  std::unordered_map<int32_t, int> seen;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool known = seen[labels[i]]++ >= per_person;
    (known ? split.probes : split.gallery).push_back(static_cast<int64_t>(i));
  }
  return split;
}

double rank1(const LabelledRows& gallery, const LabelledRows& probes, ThreadPool& threads) {
  check_rows(gallery);
  check_rows(probes);
  if (gallery.features != probes.features) {
    throw InvalidInput("gallery of " + std::to_string(gallery.features) +
                       " features against probes of " + std::to_string(probes.features));
  }
  if (gallery.count() == 0 || probes.count() == 0) return 0.0;
  const std::vector<float> known = normalized(gallery.values, gallery.features);
  const std::vector<float> asked = normalized(probes.values, probes.features);
  const LabelledRows known_rows{known, gallery.features, gallery.labels};
  const LabelledRows asked_rows{asked, probes.features, probes.labels};
  const int64_t blocks = (probes.count() + kBlockRows - 1) / kBlockRows;
  std::vector<int64_t> identified(static_cast<size_t>(blocks));
  threads.parallel_for(static_cast<int>(blocks), [&](int block) {
    identified[static_cast<size_t>(block)] =
        count_identified(known_rows, asked_rows, block * kBlockRows);
  });
  return static_cast<double>(std::reduce(identified.begin(), identified.end())) /
         static_cast<double>(probes.count());
}

double rank1(const LabelledRows& gallery, const LabelledRows& probes) {
  ThreadPool this_thread(1);
  return rank1(gallery, probes, this_thread);
}

double rank1(const LabelledRows& embeddings, const GallerySplit& split, ThreadPool& threads) {
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
               pick(split.probes, probe_values, probe_labels), threads);
}

double rank1(const LabelledRows& embeddings, const GallerySplit& split) {
  ThreadPool this_thread(1);
  return rank1(embeddings, split, this_thread);
}

}  // namespace outrigger::training
