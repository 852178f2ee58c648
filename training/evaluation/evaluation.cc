#include "training/evaluation/evaluation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/error.h"
#include "training/evaluation/metrics.h"
#include "training/evaluation/verification.h"

namespace outrigger::training {
namespace {

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

std::optional<double> verification_of(const LabelledRows& embeddings) {
  try {
    return verify(embeddings, draw_pairs(embeddings.labels)).accuracy;
  } catch (const InvalidInput&) {
    return std::nullopt;  // too few images of one person for pairs
  }
}

std::optional<double> identification_of(const LabelledRows& embeddings, ThreadPool& threads) {
  const GallerySplit split = split_gallery(embeddings.labels);
  if (split.probes.empty()) return std::nullopt;
  return rank1(embeddings, split, threads);
}

}  // namespace

void EvaluationSums::add(std::span<const float> rows, std::span<const int32_t> labels) {
  ensure(rows.size() == labels.size() * width_, "every label has a row of scores");
  for (size_t at = 0; at < rows.size(); at += width_) {
    const auto row = rows.subspan(at, width_);
    const auto embedding = row.subspan(nn::Score::kEmbedding);
    const bool finite_embedding = all_finite(embedding);
    finite_embeddings_ &= finite_embedding;
    loss_ += row[nn::Score::kLoss];
    if (finite_embedding && std::isfinite(row[nn::Score::kLoss])) {
      correct_ += row[nn::Score::kCorrect];
    } else {
      ++not_finite_;
    }
    embeddings_.insert(embeddings_.end(), embedding.begin(), embedding.end());
  }
  labels_.insert(labels_.end(), labels.begin(), labels.end());
}

EvaluationResult EvaluationSums::result(int64_t samples, FaceMetrics wanted,
                                        ThreadPool& threads) const {
  EvaluationResult result;
  result.samples = static_cast<int64_t>(labels_.size());
  result.broken = samples - result.samples;
  result.not_finite = not_finite_;
  if (labels_.empty()) return result;
  if (std::ranges::max(labels_) < classes_) {
    if (std::isfinite(loss_)) result.loss = loss_ / static_cast<double>(labels_.size());
    result.accuracy = correct_ / static_cast<double>(labels_.size());
  }
  if (embeddings_.empty() || !finite_embeddings_) return result;
  const LabelledRows rows{embeddings_, static_cast<int64_t>(embeddings_.size() / labels_.size()),
                          labels_};
  if (wanted.verification) result.verification = verification_of(rows);
  if (wanted.identification) result.identification = identification_of(rows, threads);
  return result;
}

Evaluator::Evaluator(const nn::Graph& graph, const nn::Backend& backend, ThreadPool& threads,
                     nn::ScorerOptions options)
    : batch_(options.batch),
      classes_(static_cast<int32_t>(element_count(graph.layers().back().output))),
      threads_(threads),
      scorer_(graph, backend, threads, options) {}

EvaluationResult Evaluator::run(feed::Feed& feed, const data::Dataset& dataset,
                                std::span<const float> parameters, std::span<const float> buffers,
                                FaceMetrics wanted) {
  scorer_.load(parameters, buffers);
  EvaluationSums sums(scorer_.width(), classes_);
  const uint32_t batches = feed.begin_evaluation(dataset, static_cast<uint32_t>(batch_));
  for (uint32_t index = 0; index < batches; ++index) {
    const feed::ReadyMicroBatch batch = feed.take_evaluation(index);
    if (batch.slots.empty()) continue;
    sums.add(scorer_.score(std::as_const(*batch.tensor).view(), batch.labels), batch.labels);
  }
  feed.end_evaluation();
  return sums.result(dataset.size(), wanted, threads_);
}

}  // namespace outrigger::training
