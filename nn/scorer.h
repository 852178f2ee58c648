#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/tensor.h"
#include "common/thread_pool.h"
#include "nn/graph.h"
#include "nn/program.h"

namespace outrigger::nn {

/// What a network makes of one image. One after the other in a row of floats: the loss, 1 where the
/// largest logit is the label's (else 0), and the embedding if it is wanted. Loss and correct are 0
/// where the label is none of the network's classes, whose logits say nothing of it.
struct Score {
  static constexpr size_t kLoss = 0;
  static constexpr size_t kCorrect = 1;
  static constexpr size_t kEmbedding = 2;
};

struct ScorerOptions {
  int64_t batch = 1;  // images at once, at most
  Precision precision = Precision::kFloat32;
  bool embeddings = false;  // whether rows hold them
};

/// Floats in a row of scores.
size_t score_width(const Graph& graph, bool embeddings);

/// A whole network in inference: pixels in, scores out. One thread.
class Scorer {
 public:
  /// Compiles at the first `load`. References must outlive this.
  Scorer(const Graph& graph, const Backend& backend, ThreadPool& threads, ScorerOptions options);

  /// Compiles and takes all memory that it will need of a device, as the first `load` would.
  void prepare();
  /// Whole arenas.
  void load(std::span<const float> parameters, std::span<const float> buffers);
  /// `pixels`: uint8 {n, H, W, C}, n up to the batch, a label each. Returns n rows of score_width;
  /// good until the next call. Softmax cross-entropy without smoothing.
  std::span<const float> score(const ConstTensorView& pixels, std::span<const int32_t> labels);
  size_t width() const { return width_; }

 private:
  struct Part {
    std::unique_ptr<Program> program;
    std::unique_ptr<Weights> weights;
    std::unique_ptr<Tape> tape;
    Tensor output;
  };
  void prepare(Part& part, Segment segment) const;
  void load(const Part& part, Segment segment, std::span<const float> parameters,
            std::span<const float> buffers) const;
  Segment backbone() const { return {0, embedding_end_}; }
  Segment head() const { return {embedding_end_, graph_.size()}; }
  bool has_head() const { return embedding_end_ < graph_.size(); }
  static void forward(Part& part, const ConstTensorView& input, int64_t count);
  ConstTensorView padded(const ConstTensorView& pixels);
  const Part& last() const { return has_head() ? head_ : backbone_; }

  const Graph& graph_;
  const Backend& backend_;
  ThreadPool& threads_;
  const ScorerOptions options_;
  const int embedding_end_;  // layers up to and with the embedding
  const size_t width_;
  Part backbone_;  // pixels to embedding; the head is computed from it
  Part head_;      // absent where the embedding is the last layer
  Tensor full_;    // a partial batch, padded
  std::vector<float> rows_;
};

}  // namespace outrigger::nn
