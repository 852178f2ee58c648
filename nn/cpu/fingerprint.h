#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "common/thread_pool.h"
#include "nn/program.h"

namespace outrigger::nn::cpu {

struct Numerics {
  std::string fingerprint;           // SHA-256, in hexadecimal
  double seconds = 0;                // that the pass takes, with all threads and nothing beside
  std::vector<LayerSeconds> layers;  // of that stem
};

/// What this machine's arithmetic makes of a small fixed pass: the hash of outputs, statistics and
/// gradients of one forward and backward pass of the layers before `cut` (a legal cut behind at
/// least one layer, or the whole graph) over a micro-batch of `batch` made-up samples. Two
/// processes that agree compute that stem alike, bit for bit; two that do not, because of another
/// instruction set, oneDNN, cache size or a defect, must not share it. A pass of less than
/// five seconds is run again, up to three times, to time it warm. Cut 0 runs no layer and gives the
/// empty string. Throws Cancelled when asked to stop, before the next pass.
Numerics measure_numerics(const Graph& graph, int cut, int64_t batch, Precision precision,
                          ThreadPool& threads, const std::stop_token& stop = {});

}  // namespace outrigger::nn::cpu
