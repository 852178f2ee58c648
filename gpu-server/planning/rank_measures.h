#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu-server/planning/worker_book.h"

namespace outrigger::gpu_server {

/// What was measured at one rank.
struct RankMeasures {
  double busy = 0;                      // seconds of its last step in which its device worked
  uint64_t plan = 0;                    // the number of that step's
  double memory = 0;                    // bytes that the job may take on its server; 0: not known
  uint32_t threads = 1;                 // of its own worker
  std::vector<WorkerMeasures> workers;  // its remote ones
  WorkerMeasures local;                 // its own
};

/// As numbers that travel between ranks: what plans are found by, so no names and no counts.
std::vector<float> pack(const RankMeasures& measures);
/// Throws IoError where that is not what `pack` makes: a rank of another version.
RankMeasures unpack_rank(std::span<const float> numbers);

}  // namespace outrigger::gpu_server
