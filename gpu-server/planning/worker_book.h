#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/layer_seconds.h"
#include "feed/messages.h"
#include "gpu-server/planning/jump.h"
#include "transport/link.h"

namespace outrigger::gpu_server {

/// What was measured of one worker; averages over its newest results, so that they follow a
/// machine that changes.
struct WorkerMeasures {
  std::string name;
  uint32_t cores = 1;
  uint64_t micro_batches = 0;   // forward results that came from it, as pixels or activations
  uint64_t stem_gradients = 0;  // and stem gradients
  double memory = 0;            // bytes that were free for the job when it joined; 0: not known
  double pass_seconds = 0;  // of the stem up to the deepest cut, as it told when it joined; 0: none
  double first_decode = 0;  // seconds a micro-batch, the mean of its first ones
  double first_work = 0;    // of that, work()
  double decode = 0;        // now; 0: not measured
  double read = 0;          // of that, waiting for bytes
  struct Stem {
    double forward = 0;
    double backward = 0;
    double decode = 0;  // work() when this was measured: how fast the machine was then
    double weight = 1;  // among those of other cuts: what runs now tells more than what ran before
  };
  /// Of decoding what the machine does itself: who waits for bytes is not slow.
  double work() const;
  std::map<int32_t, Stem> stems;     // by cut, of those it has run
  std::vector<LayerSeconds> layers;  // of its stems, of one core; at first as it told
  double bytes_per_second = 0;       // of its link, the slower direction; 0: not known
  double latency = 0;                // seconds, one way
};

/// Keeps WorkerMeasures up to date. Not thread-safe.
class WorkerBook {
 public:
  WorkerBook(uint32_t cores, double pass_seconds, double memory = 0,
             std::vector<LayerSeconds> layers = {}) {
    measures_.layers = std::move(layers);
    measures_.cores = cores;
    measures_.memory = memory;
    measures_.pass_seconds = pass_seconds;
  }
  /// Whether the worker is a faster machine from this message on: then what its link was measured
  /// at tells nothing, since a machine that stands still holds its link up.
  bool note(const feed::WorkerMessage& message);
  /// What was noted, with what the link has measured.
  WorkerMeasures measures(const transport::LinkStats& link) const;

 private:
  /// How many results of a step come from this worker, lately.
  class Pace {
   public:
    void note(uint64_t step);
    double per_step() const;  // 1 or more

   private:
    struct Count {
      uint64_t step = 0;
      uint32_t results = 0;
    };
    std::deque<Count> newest_;
  };
  /// Of what a cut's stems take.
  struct StemResults {
    uint32_t count = 0;
    Jump forward;
    Jump backward;
  };
  // Whether it is a faster machine by that.
  bool note_decode(const feed::WorkTimes& times);
  bool note_stem(const feed::WorkTimes& times, bool gradient);
  /// So many results in a row that are unlike those before make a machine another one; 0: with so
  /// few that nobody can tell.
  double enough_for_jump(uint64_t results) const;

  WorkerMeasures measures_;
  Pace pace_;
  Jump decode_jump_;
  std::map<int32_t, StemResults> stem_results_;  // by cut
  int32_t newest_cut_ = 0;                       // of the last stem that ran
  double told_rate_ = 0;                         // bytes per second, as the worker tells
  uint32_t told_late_ = 0;  // results whose rate is still of the slower machine that it was
};

}  // namespace outrigger::gpu_server
