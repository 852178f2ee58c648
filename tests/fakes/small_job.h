#pragma once

#include "data/sample.h"
#include "nn/graph.h"
#include "training/state.h"

/// What tests that train in a Simulation begin with.
namespace outrigger::fakes {

/// Samples of three classes in turn; with `with_broken` every eleventh is broken and every fourth
/// damaged (SyntheticPixels).
data::Dataset three_classes(int samples, bool with_broken = false);

/// A run of the graph before its first step, drawn from a seed of its own.
training::TrainingState fresh_state(const nn::Graph& graph);

}  // namespace outrigger::fakes
