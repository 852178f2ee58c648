#pragma once

#include <string>
#include <vector>

#include "api/launch.h"
#include "api/training_job.h"
#include "cli/wires.h"
#include "nn/graph.h"
#include "training/planner/model/profile.h"

namespace outrigger::cli {

struct MeasuredJob {
  training::Profile profile;
  nn::Graph graph;                   // whose cuts the profile tells of
  double cores = 1;                  // of the device, as a planner counts them: a GPU is one
  bool shared = true;                // with the server's own worker
  Wires wires;                       // of the job
  NarrowedWork narrowed_work;        // what links would take with others
  std::vector<std::string> remarks;  // on the job's split, for people
};

/// Measures on `threads` cores of this machine, or on the device that `launch` and job name, what a
/// job costs each of its ranks: every layer, and reading, decoding and augmenting some of its
/// images, and links. Seconds. Throws InvalidInput, IoError, and Failure where the device cannot be
/// had.
MeasuredJob measure_job(const api::TrainingJob& job, const api::Launch& launch, int threads);

}  // namespace outrigger::cli
