#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/thread_pool.h"
#include "data/sample.h"
#include "feed/feed.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "nn/scorer.h"

namespace outrigger::training {

/// What an evaluation measured; what was not asked for is absent. So are accuracy and loss, which
/// are the classifier's, where an image shows somebody who is none of its classes.
struct EvaluationResult {
  std::optional<double> accuracy;      // top-1 of the classifier
  std::optional<double> loss;          // mean softmax cross-entropy, without smoothing
  std::optional<double> verification;  // 10-fold over pairs of embeddings
  std::optional<double>
      identification;  // rank-1 of embeddings, the first image of each person is known
  int64_t samples = 0;
  int64_t broken = 0;  // images that could not be decoded
  /// Of the samples, those whose loss or embedding is no number (float16 overflows). Accuracy
  /// counts them as not recognised; what is a number only where all of them are is absent.
  int64_t not_finite = 0;
};

/// Which metrics of embeddings are wanted. Verification takes a few thousand comparisons,
/// identification as many as there are pairs of a known and another image.
struct FaceMetrics {
  bool verification = false;
  bool identification = false;
};

/// Makes an evaluation's result of the scores of its images, which come in the data set's order.
class EvaluationSums {
 public:
  /// `width`: floats of a row, as nn::score_width gives them. `classes`: of the network; who has a
  /// label behind them was not trained on.
  EvaluationSums(size_t width, int32_t classes) : width_(width), classes_(classes) {}

  /// A row for each label.
  void add(std::span<const float> rows, std::span<const int32_t> labels);
  /// Of a data set of so many samples. What is wanted of embeddings is there where rows hold them
  /// and the labels give pairs.
  EvaluationResult result(int64_t samples, FaceMetrics wanted, ThreadPool& threads) const;

 private:
  const size_t width_;
  const int32_t classes_;
  double loss_ = 0;
  double correct_ = 0;
  int64_t not_finite_ = 0;
  bool finite_embeddings_ = true;
  std::vector<float> embeddings_;
  std::vector<int32_t> labels_;
};

/// Evaluates weights on a data set whose images the feed's workers make. One thread.
class Evaluator {
 public:
  /// References must outlive this.
  Evaluator(const nn::Graph& graph, const nn::Backend& backend, ThreadPool& threads,
            nn::ScorerOptions options);

  EvaluationResult run(feed::Feed& feed, const data::Dataset& dataset,
                       std::span<const float> parameters, std::span<const float> buffers,
                       FaceMetrics wanted);

 private:
  const int64_t batch_;
  const int32_t classes_;
  ThreadPool& threads_;
  nn::Scorer scorer_;
};

}  // namespace outrigger::training
