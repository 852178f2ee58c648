#include "nn/program.h"

#include "common/error.h"
#include "nn/resident.h"

namespace outrigger::nn {

void check_options(const Graph& graph, const ProgramOptions& options) {
  const Segment segment = options.segment;
  ensure(options.batch >= 1, "a program's batch has at least one sample");
  ensure(options.groups >= 1 && options.batch % options.groups == 0,
         "groups of batch norm are of equal size");
  ensure(0 <= segment.begin && segment.begin < segment.end && segment.end <= graph.size(),
         "a program's segment lies in its graph");
  graph.cut_at(segment.begin);
  if (segment.end != graph.size()) graph.cut_at(segment.end);
  ensure(segment.begin > 0 || !options.input_gradient, "pixels have no gradient");
}

std::unique_ptr<Resident> Backend::make_resident(const Graph&, const ResidentOptions&) const {
  return nullptr;
}

}  // namespace outrigger::nn
