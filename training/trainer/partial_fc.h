#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/tensor.h"
#include "common/thread_pool.h"
#include "nn/graph.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/program.h"
#include "training/trainer/reducer.h"

namespace outrigger::training {

struct PartialFcOptions {
  /// Part of its classes that a rank compares a micro-batch with: those of the micro-batch's
  /// samples, and others drawn anew. In (0, 1]; 1: all.
  double sample_rate = 1;
  int64_t micro_batch = 1;  // m
  uint64_t seed = 0;
};

/// With how many of its `classes` a rank compares `rows` samples.
int64_t classes_compared(double sample_rate, int64_t classes, int64_t rows);

/// The classifier of faces, shared out over the ranks (An et al., "Killing Two Birds with One
/// Stone: Efficient and Robust Training of Face Recognition CNNs by Partial FC", CVPR 2022). Each
/// rank has a contiguous part of the classes. For every micro-batch ranks gather each other's
/// embeddings, each computes the logits of its classes for all of them, and the softmax's maximum
/// and sum are taken over ranks. A class's weights are stepped by the rank that has it, in steps in
/// which it was among those compared with; else they, and their momentum, stay as they are.
///
/// What is drawn depends on seed, step, micro-batch and rank alone. Every rank makes the same calls
/// in the same order. One thread.
class PartialFc {
 public:
  /// One micro-batch, on this rank; all ranks are at the same.
  struct MicroBatch {
    uint64_t step = 0;
    uint32_t index = 0;
    ConstTensorView features;         // {m, E}, float32
    std::span<const int32_t> labels;  // {m}
  };

  /// `graph` ends in ArcFace, whose weights {C, E} are the end of its parameters. References must
  /// outlive this; `reducer` may be null: one rank. Throws InvalidInput where a rank would have
  /// fewer than two classes.
  PartialFc(const PartialFcOptions& options, const nn::Graph& graph, const nn::Backend& backend,
            ThreadPool& threads, Reducer* reducer);

  /// Loss of this rank's samples, and d loss / d features, {m, E}; keeps the gradients of weights.
  /// `parameters`: the whole arena, of which this rank's classes count. A sample is correct where
  /// no class that it was compared with has a larger logit.
  nn::LossResult run(const MicroBatch& batch, std::span<const float> parameters,
                     const TensorView& gradient);

  /// Multiplies the gradients kept so far by `mean`; the sum of their squares over all ranks.
  double finish_gradients(float mean);
  /// Steps the weights by the gradients kept so far times `shrink`, and forgets them. Whole arenas.
  void update(const nn::SgdOptions& options, float learning_rate, float shrink,
              std::span<float> momentum, std::span<float> parameters);
  /// Gives every rank the classes of the others, in an arena of the whole model.
  void gather(std::span<float> arena);

 private:
  size_t rows() const { return static_cast<size_t>(options_.micro_batch) * ranks_; }
  size_t width() const { return static_cast<size_t>(width_); }
  std::span<const float> own(std::span<const float> arena) const;
  void gather_batch(const MicroBatch& batch);
  void choose(uint64_t step, uint32_t index);
  void load(std::span<const float> parameters);
  /// Turns logits into d loss / d logits; the losses of all ranks' samples.
  std::vector<nn::LossResult> softmax();
  void keep_gradients();
  void all_reduce(std::span<float> values) {
    if (reducer_ != nullptr) reducer_->all_reduce(values);
  }

  const PartialFcOptions options_;
  Reducer* const reducer_;
  const uint32_t ranks_, rank_;
  const nn::Range range_;  // of all classes' weights
  const bool trains_;
  const int64_t width_;          // E
  const int64_t first_, count_;  // this rank's classes
  const int64_t compared_;       // how many of them a micro-batch is compared with
  const nn::Graph graph_;        // embeddings to logits of so many classes
  std::unique_ptr<nn::Program> program_;
  std::unique_ptr<nn::Weights> weights_;
  std::unique_ptr<nn::Tape> tape_;
  bool loaded_ = false;           // all classes, as they are
  std::vector<float> gathered_;   // {ranks, m, E + 1}: features and label
  std::vector<int32_t> labels_;   // of all rows: places among those compared with, or -1
  std::vector<int32_t> classes_;  // compared with, ascending, from 0 in this rank's part
  std::vector<int32_t> places_;   // of each of this rank's classes in classes_, or -1
  std::vector<float> packed_;     // their weights, where they are not all
  std::vector<float> exchanged_;  // {ranks, rows, 3}: maximum, sum, own logit
  std::vector<uint64_t> slots_;
  Tensor features_, features_gradient_, logits_;
  std::vector<float> step_gradients_;  // of one micro-batch, {compared, E}
  std::vector<float> gradients_;       // of this rank's classes, sums
  std::vector<bool> touched_;          // which of them have any
};

}  // namespace outrigger::training
