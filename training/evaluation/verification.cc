#include "training/evaluation/verification.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <unordered_set>
#include <utility>

#include "common/error.h"
#include "common/random.h"

namespace outrigger::training {
namespace {

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

}  // namespace outrigger::training
