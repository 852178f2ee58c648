#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/tensor.h"
#include "nn/program.h"

namespace outrigger::nn::cpu {

/// A program with made-up weights and values of everything that goes in: for measuring and for
/// fingerprints. What is made up depends on the graph, the options and the seed alone.
class SyntheticPass {
 public:
  SyntheticPass(const Graph& graph, const ProgramOptions& options, const Program& program,
                uint64_t seed);

  /// Forward and, in training, backward.
  void run();

  const Tensor& output() const { return output_; }
  const std::vector<float>& gradients() const { return gradients_; }
  const std::vector<float>& statistics() const { return statistics_; }

 private:
  const Program& program_;
  const bool training_;
  Tensor input_, output_, output_gradient_, input_gradient_;
  std::vector<float> gradients_, statistics_;
  std::vector<uint64_t> slots_;
  std::vector<int32_t> labels_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Tape> tape_;
};

}  // namespace outrigger::nn::cpu
