#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/program.h"

/// The fast backend for CPUs: oneDNN for what multiplies, own kernels for the rest.
///
/// A micro-batch runs as fixed blocks of samples, each on one thread, and sums are added in block
/// order: results do not depend on the number of threads or on where the graph is cut
/// (docs/decisions/0002-blocks-of-samples.md). They do depend on the instruction set
/// (instruction_set.h) and on oneDNN's version.
namespace outrigger::nn::cpu {

/// Precision bfloat16 stores maps and convolution weights as bfloat16 and sums in float32; feature
/// vectors and what works on them stay float32. Where the instruction set in force has no bfloat16,
/// programs compute in float32 and convert at their ends (logged once).
std::unique_ptr<Backend> make_cpu_backend();

/// What one layer of a program costs, for one micro-batch; a group that runs as one counts for its
/// parts.
struct LayerCost {
  std::string layer;
  double forward_seconds = 0;  // of one core
  double backward_seconds = 0;
  size_t kept_bytes = 0;  // from its forward to its backward
};

/// Runs a compiled segment with made-up values `repeats` times after a warm-up and returns each
/// layer's least cost; the planner's measurement. Layers that cost nothing (joined to another) are
/// listed with 0. Backward only in training.
std::vector<LayerCost> profile(const Graph& graph, const ProgramOptions& options,
                               ThreadPool& threads, int repeats);

}  // namespace outrigger::nn::cpu
