#include "tests/fakes/small_job.h"

#include <string>

#include "nn/models.h"

namespace outrigger::fakes {

data::Dataset three_classes(int samples, bool with_broken) {
  data::Dataset dataset;
  dataset.set_classes({"a", "b", "c"});
  dataset.begin_container("", false);
  for (int i = 0; i < samples; ++i) {
    const char* kind = "image";
    if (with_broken && i % 4 == 2) kind = "damaged";
    if (with_broken && i % 11 == 5) kind = "broken";
    dataset.add_file(kind + std::to_string(i), i % 3);
  }
  dataset.finish();
  return dataset;
}

training::TrainingState fresh_state(const nn::Graph& graph) {
  training::TrainingState state;
  state.parameters.resize(static_cast<size_t>(graph.parameter_count()));
  state.momentum.resize(state.parameters.size());
  state.buffers.resize(static_cast<size_t>(graph.buffer_count()));
  nn::initialize(graph, 3, state.parameters, state.buffers);
  state.averaged = state.parameters;
  return state;
}

}  // namespace outrigger::fakes
