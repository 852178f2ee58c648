#include "training/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "common/error.h"
#include "common/random.h"

namespace outrigger::training {
namespace {

float dot(std::span<const float> a, std::span<const float> b) {
  constexpr size_t kLanes = 8;  // independent sums, so that the compiler may use vector registers
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  float sum = std::accumulate(lanes, lanes + kLanes, 0.0f);
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void check_rows(const LabelledRows& rows) {
  if (rows.features <= 0 ||
      static_cast<int64_t>(rows.values.size()) != rows.count() * rows.features) {
    throw InvalidInput(std::to_string(rows.values.size()) + " values are not " +
                       std::to_string(rows.count()) + " rows of " + std::to_string(rows.features));
  }
}

/// All pairs of rows of one kind, numbered without being listed. Rows are sorted by label; row p
/// pairs with a run of later rows: those of its own label (`same`), or all of the labels behind it.
class PairSpace {
 public:
  PairSpace(std::span<const int32_t> labels, bool same)
      : same_(same), order_(labels.size()), starts_(labels.size() + 1) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int64_t a, int64_t b) { return labels[at(a)] < labels[at(b)]; });
    std::vector<int64_t> label_end(labels.size());
    for (size_t p = labels.size(); p-- > 0;) {
      const bool last_of_label =
          p + 1 == labels.size() || labels[at(order_[p])] != labels[at(order_[p + 1])];
      label_end[p] = last_of_label ? static_cast<int64_t>(p) + 1 : label_end[p + 1];
    }
    first_partner_.resize(labels.size());
    for (size_t p = 0; p < labels.size(); ++p) {
      const auto rows = static_cast<int64_t>(labels.size());
      first_partner_[p] = same ? static_cast<int64_t>(p) + 1 : label_end[p];
      starts_[p + 1] = starts_[p] + (same ? label_end[p] : rows) - first_partner_[p];
    }
  }

  int64_t size() const { return starts_.back(); }

  Pair pair(int64_t number) const {
    const auto next = std::upper_bound(starts_.begin(), starts_.end(), number);
    const auto p = static_cast<size_t>(next - starts_.begin() - 1);
    const int64_t partner = first_partner_[p] + number - starts_[p];
    return {order_[p], order_[at(partner)], same_};
  }

 private:
  static size_t at(int64_t index) { return static_cast<size_t>(index); }

  bool same_;
  std::vector<int64_t> order_;
  std::vector<int64_t> starts_;  // number of row p's first pair
  std::vector<int64_t> first_partner_;
};

/// `wanted` different numbers below `bound`, in random order (Floyd's algorithm, then a shuffle).
std::vector<int64_t> draw_distinct(int64_t wanted, int64_t bound, RandomStream& random) {
  std::vector<int64_t> drawn;
  std::unordered_set<int64_t> seen;
  for (int64_t j = bound - wanted; j < bound; ++j) {
    const auto candidate = static_cast<int64_t>(random.below64(static_cast<uint64_t>(j) + 1));
    const int64_t chosen = seen.contains(candidate) ? j : candidate;
    seen.insert(chosen);
    drawn.push_back(chosen);
  }
  for (size_t i = drawn.size(); i > 1; --i) std::swap(drawn[i - 1], drawn[random.below64(i)]);
  return drawn;
}

struct Scored {
  float score = 0;
  bool same = false;
};

int64_t correct_above(std::span<const Scored> pairs, double threshold) {
  return std::count_if(pairs.begin(), pairs.end(),
                       [&](const Scored& p) { return (p.score > threshold) == p.same; });
}

/// The threshold between two neighbouring scores (or below all) that judges most pairs rightly; the
/// lowest of equals.
double best_threshold(std::vector<Scored> pairs) {
  std::sort(pairs.begin(), pairs.end(),
            [](const Scored& a, const Scored& b) { return a.score < b.score; });
  auto correct = std::count_if(pairs.begin(), pairs.end(), [](const Scored& p) { return p.same; });
  auto best = correct;
  double threshold = pairs.front().score - 1.0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    correct += pairs[i].same ? -1 : 1;
    const bool last = i + 1 == pairs.size();
    if (!last && pairs[i + 1].score == pairs[i].score) continue;
    if (correct <= best) continue;
    best = correct;
    threshold =
        last ? pairs[i].score : (static_cast<double>(pairs[i].score) + pairs[i + 1].score) / 2;
  }
  return threshold;
}

std::optional<double> true_accept_rate(std::span<const Scored> pairs) {
  constexpr int64_t kPairsPerFalseAccept = 1000;
  std::vector<float> different;
  for (const Scored& p : pairs) {
    if (!p.same) different.push_back(p.score);
  }
  const auto allowed = static_cast<int64_t>(different.size()) / kPairsPerFalseAccept;
  if (allowed == 0) return std::nullopt;
  std::nth_element(different.begin(), different.begin() + allowed, different.end(),
                   std::greater<>());
  const float threshold =
      different[static_cast<size_t>(allowed)];  // at most `allowed` scores lie above it
  int64_t same = 0;
  int64_t accepted = 0;
  for (const Scored& p : pairs) {
    same += p.same;
    accepted += p.same && p.score > threshold;
  }
  return same == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(same);
}

std::vector<Scored> score(const LabelledRows& embeddings, std::span<const Pair> pairs) {
  const std::vector<float> unit = normalized(embeddings.values, embeddings.features);
  const LabelledRows rows{unit, embeddings.features, embeddings.labels};
  std::vector<Scored> scores;
  scores.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    if (std::min(pair.first, pair.second) < 0 ||
        std::max(pair.first, pair.second) >= rows.count()) {
      throw InvalidInput("pair " + std::to_string(pair.first) + ", " + std::to_string(pair.second) +
                         " lies outside of " + std::to_string(rows.count()) + " rows");
    }
    scores.push_back({dot(rows.row(pair.first), rows.row(pair.second)), pair.same});
  }
  return scores;
}

}  // namespace

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

std::vector<float> normalized(std::span<const float> values, int64_t features) {
  std::vector<float> unit(values.begin(), values.end());
  const auto width = static_cast<size_t>(features);
  for (size_t first = 0; first + width <= unit.size(); first += width) {
    double squares = 0;
    for (size_t i = first; i < first + width; ++i)
      squares += static_cast<double>(unit[i]) * unit[i];
    if (!std::isfinite(squares)) {
      throw InvalidInput("embedding " + std::to_string(first / width) +
                         " holds a value that is not finite");
    }
    if (squares == 0) continue;
    const double scale = 1.0 / std::sqrt(squares);
    for (size_t i = first; i < first + width; ++i) unit[i] = static_cast<float>(unit[i] * scale);
  }
  return unit;
}

std::vector<Pair> draw_pairs(std::span<const int32_t> labels, const PairOptions& options) {
  const PairSpace same(labels, true);
  const PairSpace different(labels, false);
  const int64_t available = std::min(same.size(), different.size());
  const int64_t per_fold = std::min(available, options.pairs / 2) / options.folds;
  if (per_fold == 0) {
    throw InvalidInput("verification in " + std::to_string(options.folds) +
                       " folds needs as many pairs of one person and of two; " +
                       std::to_string(labels.size()) + " images give " +
                       std::to_string(same.size()) + " and " + std::to_string(different.size()));
  }
  const int64_t wanted = per_fold * options.folds;
  RandomStream same_random(options.seed, RandomUse::kEvaluationPairs, 0);
  RandomStream different_random(options.seed, RandomUse::kEvaluationPairs, 1);
  const auto same_numbers = draw_distinct(wanted, same.size(), same_random);
  const auto different_numbers = draw_distinct(wanted, different.size(), different_random);
  std::vector<Pair> pairs;
  for (size_t i = 0; i < same_numbers.size(); ++i) {
    pairs.push_back(same.pair(same_numbers[i]));
    pairs.push_back(different.pair(different_numbers[i]));
  }
  return pairs;
}

Verification verify(const LabelledRows& embeddings, std::span<const Pair> pairs, int folds) {
  check_rows(embeddings);
  const size_t per_fold = folds < 2 ? 0 : pairs.size() / static_cast<size_t>(folds);
  if (per_fold == 0) {
    throw InvalidInput("verification of " + std::to_string(pairs.size()) + " pairs in " +
                       std::to_string(folds) + " folds: at least 2 folds, and a pair for each");
  }
  const std::vector<Scored> scored =
      score(embeddings, pairs.first(per_fold * static_cast<size_t>(folds)));
  Verification result;
  double squares = 0;
  for (size_t first = 0; first < scored.size(); first += per_fold) {
    std::vector<Scored> others(scored.begin(), scored.begin() + static_cast<ptrdiff_t>(first));
    others.insert(others.end(), scored.begin() + static_cast<ptrdiff_t>(first + per_fold),
                  scored.end());
    const double threshold = best_threshold(std::move(others));
    const auto fold = std::span(scored).subspan(first, per_fold);
    const double accuracy =
        static_cast<double>(correct_above(fold, threshold)) / static_cast<double>(per_fold);
    result.accuracy += accuracy;
    result.threshold += threshold;
    squares += accuracy * accuracy;
  }
  result.accuracy /= folds;
  result.threshold /= folds;
  result.deviation = std::sqrt(std::max(0.0, squares / folds - result.accuracy * result.accuracy));
  result.true_accept_rate = true_accept_rate(scored);
  result.pairs = static_cast<int64_t>(scored.size());
  return result;
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
