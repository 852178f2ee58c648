#pragma once

#include <string>
#include <vector>

#include "nn/graph.h"

namespace outrigger::nn {

/// Where this graph may be cut, by name and in the graph's order.
inline std::vector<std::string> cut_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Cut& cut : graph.cuts()) names.push_back(cut.name);
  return names;
}

}  // namespace outrigger::nn
