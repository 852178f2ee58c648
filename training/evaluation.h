#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/thread_pool.h"
#include "data/sample.h"
#include "feed/feed.h"
#include "nn/graph.h"
#include "nn/program.h"

namespace outrigger::training {

/// What an evaluation measured; what was not asked for is absent.
struct EvaluationResult {
  double accuracy = 0;                 // top-1 of the classifier
  double loss = 0;                     // mean softmax cross-entropy, without smoothing
  std::optional<double> verification;  // 10-fold over pairs of embeddings
  std::optional<double>
      identification;  // rank-1 of embeddings, the first image of each person is known
  int64_t samples = 0;
  int64_t broken = 0;  // images that could not be decoded
};

/// Evaluates weights on a data set whose images the feed's workers make. One thread.
class Evaluator {
 public:
  /// References must outlive this.
  Evaluator(const nn::Graph& graph, const nn::Backend& backend, ThreadPool& threads,
            nn::Precision precision, int64_t batch);

  /// `faces`: also verification and identification, where the labels give pairs.
  EvaluationResult run(feed::Feed& feed, const data::Dataset& dataset,
                       std::span<const float> parameters, std::span<const float> buffers,
                       bool faces);

 private:
  struct Part {
    std::unique_ptr<nn::Program> program;
    std::unique_ptr<nn::Weights> weights;
    std::unique_ptr<nn::Tape> tape;
    Tensor output;
  };
  Part make_part(nn::Segment segment) const;
  void load(Part& part, nn::Segment segment, std::span<const float> parameters,
            std::span<const float> buffers) const;
  void forward(Part& part, const ConstTensorView& input, int64_t count) const;

  const nn::Graph& graph_;
  const nn::Backend& backend_;
  ThreadPool& threads_;
  const nn::Precision precision_;
  const int64_t batch_;
  int embedding_end_;  // layers up to and with the embedding
  Part backbone_;      // pixels to embedding; the head is computed from it
  Part head_;          // absent where the embedding is the last layer
};

}  // namespace outrigger::training
