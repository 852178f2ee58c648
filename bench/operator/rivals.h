#pragma once

#include <filesystem>

#include "bench/operator/stage.h"
#include "bench/operator/table.h"

namespace outrigger::bench {

struct RivalsSize {
  int jobs = 1000;
  int rounds = 5;
  bool kubeflow = true;  // where it was built
};

/// Pods a second of the operator, of a client without logic that posts the same objects, of the Job
/// controller, and of Kubeflow's training operator, in turns; and time of CPU and memory.
void compare_rivals(Stage& stage, Table& table, const RivalsSize& size);

/// The operator and another one, say of before a change, in turns.
void compare_versions(Stage& stage, Table& table, const RivalsSize& size,
                      const std::filesystem::path& other);

/// From the creation of a job to that of its last pod, ten jobs a second.
void measure_latency(Stage& stage, Table& table, int jobs);

}  // namespace outrigger::bench
