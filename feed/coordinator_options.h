#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>
#include <vector>

#include "common/clock.h"
#include "feed/room.h"

namespace outrigger::feed {

struct CoordinatorOptions {
  uint32_t incarnation = 1;
  uint64_t first_step = 0;
  uint64_t total_steps = 0;
  uint32_t micro_batches = 1;  // M, of this server's steps
  uint32_t micro_batch = 1;    // m, samples
  /// Where the step's first micro-batch lies in the global step: slot = (step * all + first +
  /// index) * m + position.
  uint32_t first_micro_batch = 0;
  uint32_t all_micro_batches = 0;  // of all replicas; 0: micro_batches
  uint64_t staleness = 0;          // s
  double max_bad_fraction = 0.01;  // of what this server's workers find
  /// Found in the run before: counted, and tried again all the same.
  std::vector<uint32_t> known_broken = {};
  Duration least_deadline =
      std::chrono::milliseconds(200);  // before a second lease, whatever the latencies say
  Duration set_aside =
      std::chrono::seconds(5);  // how long a worker whose read failed gets no lease
  /// A micro-batch that failed to be read more often and for longer fails the job.
  uint32_t max_read_failures = 8;
  Duration unreadable_after = std::chrono::minutes(1);
  /// How long a remote worker that could not read an evaluation's samples gets no more of them;
  /// each time in a row twice as long as before, to an hour, since the set may be missing there.
  Duration no_evaluation = std::chrono::minutes(5);
  /// Who asks for it ends evaluations before the last step, and nothing else: no worker scores any
  /// more, and the next batch that is taken throws Cancelled. Training goes on.
  std::stop_token evaluation_stop;
};

/// How many samples of a data set may be broken.
inline size_t allowed_broken(double max_bad_fraction, size_t samples) {
  return static_cast<size_t>(max_bad_fraction * static_cast<double>(samples));
}

struct WorkerTraits {
  std::string name;
  bool local = false;  // in the server's own process
  bool runs_stems =
      true;            // false: computes differently from the server, so it gets work at cut 0 only
  bool scores = true;  // has the memory to run the whole network, where it runs stems
  /// Bytes that it has for the job.
  double memory = std::numeric_limits<double>::infinity();
  uint32_t leases = kLeasesInHand;  // it has room for
  /// Whether it may run stems and has so much memory for them.
  bool holds_stems(double needs) const { return runs_stems && memory >= needs; }
};

}  // namespace outrigger::feed
