#pragma once

#include <string>

#include "common/thread_pool.h"
#include "nn/program.h"

namespace outrigger::nn::cpu {

/// What this machine's arithmetic makes of a small fixed pass: the SHA-256, in hexadecimal, of
/// outputs, statistics and gradients of one forward and backward pass of the layers before `cut` (a
/// legal cut behind at least one layer, or the whole graph) over a micro-batch of `batch` made-up
/// samples. Two processes that agree compute that stem alike, bit for bit; two that do not, because
/// of another instruction set, oneDNN, cache size or a defect, must not share it. Takes as long as
/// a few micro-batches. Cut 0 runs no layer and gives the empty string.
std::string numerics_fingerprint(const Graph& graph, int cut, int64_t batch, Precision precision,
                                 ThreadPool& threads);

}  // namespace outrigger::nn::cpu
