#include <algorithm>

#include "common/random.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/program.h"
#include "nn/cpu/synthetic.h"

namespace outrigger::nn::cpu {

std::vector<LayerCost> profile(const Graph& graph, const ProgramOptions& options,
                               ThreadPool& threads, int repeats) {
  CpuProgram program(graph, options, threads);
  SyntheticPass pass(graph, options, program, 1);
  pass.run();
  program.start_stopwatches();
  std::vector<LayerCost> costs;
  const std::vector<size_t> kept = program.kept_bytes();
  for (auto i = static_cast<size_t>(options.segment.begin);
       i < static_cast<size_t>(options.segment.end); ++i)
    costs.push_back({.layer = graph.layers()[i].name, .kept_bytes = kept[i]});
  for (int repeat = 0; repeat < repeats; ++repeat) {
    pass.run();
    const auto times = program.take_layer_seconds();
    for (size_t i = 0; i < costs.size(); ++i) {
      const auto least = [&](double& known, float now) {
        known = repeat == 0 ? now : std::min<double>(known, now);
      };
      least(costs[i].forward_seconds, times[i].forward);
      least(costs[i].backward_seconds, times[i].backward);
    }
  }
  return costs;
}

}  // namespace outrigger::nn::cpu
