#pragma once

#include <string>

#include "common/thread_pool.h"
#include "nn/graph.h"
#include "nn/program.h"

namespace outrigger::worker {

/// A hash of what the stem before `cut` computes, forward and backward, from made-up pixels and weights: two processes
/// with the same text compute bitwise the same. Libraries choose their order of sums by the processor's caches as well
/// as by its instructions, so this is asked and not guessed. Empty for cut 0. Costs one micro-batch's stem.
std::string numerics_fingerprint(const nn::Graph& graph, const nn::Backend& backend, nn::ProgramOptions options,
                                 int32_t cut, ThreadPool& threads);

}  // namespace outrigger::worker
