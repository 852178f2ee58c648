#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/clock.h"
#include "feed/ledger.h"
#include "feed/messages.h"
#include "gpu-server/planning/worker_book.h"
#include "telemetry/trace.h"

namespace outrigger::gpu_server {

/// The file in a run's folder that a rank's trace goes to.
std::string trace_name(int rank);

/// Draws all processes of a job on the server's one clock: what the device and every worker did
/// when, and what was on their links. A worker's times come with its results, so they are placed
/// backwards from the result's arrival, by what its link was measured to take; clocks of other
/// machines do not matter. Not thread-safe.
class Timeline {
 public:
  /// `trace` must outlive this.
  explicit Timeline(telemetry::Trace& trace);

  /// The device has got a micro-batch, or nothing more: what it had got is done.
  void device_takes(uint64_t step, uint32_t index, TimePoint now);
  void device_is_done(TimePoint now);
  void joined(feed::WorkerId worker, const std::string& name);
  void left(feed::WorkerId worker) { downward_.erase(worker); }
  /// A result that arrives now, and what is known of the worker's link; nothing for other messages.
  void arrived(feed::WorkerId worker, const feed::WorkerMessage& message,
               const WorkerMeasures& link, TimePoint now);
  /// What goes out to a worker now: a stem's weights and gradients at the cut; nothing for other
  /// messages. One is on the link after the other.
  void posted(feed::WorkerId worker, const feed::ServerMessage& message, const WorkerMeasures& link,
              TimePoint now);

 private:
  struct Taken {
    uint64_t step = 0;
    uint32_t index = 0;
    TimePoint since;
  };
  telemetry::Trace& trace_;
  std::map<feed::WorkerId, TimePoint> downward_;  // until when each link is taken
  std::optional<Taken> taken_;
};

}  // namespace outrigger::gpu_server
