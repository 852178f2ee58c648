#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/thread_pool.h"
#include "nn/program.h"

namespace outrigger::nn::testing {

/// A micro-batch of made-up pixels, and weights, for a whole network.
struct NetworkValues {
  std::vector<float> parameters;
  std::vector<float> buffers;
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  std::vector<uint64_t> slots;
  std::vector<float> output_gradient;
  int64_t batch = 0;
};

/// A residual network with all that resnet18 has, but narrow: quick to draw weights for and to run.
/// 16 x 16 pixels.
Graph narrow_resnet(const std::optional<std::string>& freeze_until = std::nullopt);

NetworkValues draw_network_values(const Graph& graph, int64_t batch);

/// The first `images` (0: all) of them as the input of a program that reads pixels; a view of
/// `values`.
ForwardInput input_of(const Program& program, const NetworkValues& values, int64_t images = 0);

/// What a network's forward and backward pass gives, the pieces of its segments side by side.
struct NetworkResult {
  std::vector<float> output;
  std::vector<float> statistics;
  std::vector<float> gradients;
  bool operator==(const NetworkResult&) const = default;
};

/// Runs the graph as segments that meet at `cuts` (numbers of layers, rising; may be empty).
NetworkResult run_network(const Backend& backend, ThreadPool& threads, const Graph& graph,
                          Precision precision, const NetworkValues& values,
                          const std::vector<int>& cuts = {});

/// The norm of a - b over the norm of b.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace outrigger::nn::testing
