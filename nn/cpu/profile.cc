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
  std::vector<LayerCost> costs;
  const std::vector<size_t> kept = program.kept_bytes();
  for (auto i = static_cast<size_t>(options.segment.begin);
       i < static_cast<size_t>(options.segment.end); ++i)
    costs.push_back({.layer = graph.layers()[i].name, .kept_bytes = kept[i]});
  for (int repeat = 0; repeat < repeats; ++repeat) {
    program.start_stopwatches();
    pass.run();
    const auto times = program.times();
    for (size_t i = 0; i < costs.size(); ++i) {
      const auto [forward, backward] = times[static_cast<size_t>(options.segment.begin) + i];
      const bool first = repeat == 0;
      costs[i].forward_seconds = first ? forward : std::min(costs[i].forward_seconds, forward);
      costs[i].backward_seconds = first ? backward : std::min(costs[i].backward_seconds, backward);
    }
  }
  return costs;
}

}  // namespace outrigger::nn::cpu
