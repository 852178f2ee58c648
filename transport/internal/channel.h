#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/clock.h"

namespace outrigger::transport {

/// A reliable, ordered way to move bytes between two processes, below the framing of StreamLink.
/// What one side writes as pieces the other reads as pieces of the same sizes in the same order (a
/// message transport may rely on that). One thread writes, one reads; shutdown and end_by come from
/// any.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Returns when the bytes are handed over. Throws LinkClosed when the peer takes nothing for the
  /// silence limit, is gone, or the channel was shut down.
  virtual void write(std::span<const std::span<const std::byte>> pieces) = 0;

  /// Likewise, but never waits: how many bytes were handed over. The rest is to be written next.
  /// Not where a channel has only whole messages.
  virtual bool can_write_some() const { return false; }
  virtual size_t write_some(std::span<const std::span<const std::byte>> /*pieces*/) { return 0; }

  /// Fills all pieces. Throws LinkClosed when nothing arrives for the silence limit, the peer is
  /// gone, or the channel was shut down.
  virtual void read(std::span<const std::span<std::byte>> pieces) = 0;

  /// From now on a write in progress ends by `limit`, finished or not.
  virtual void end_by(TimePoint limit) = 0;

  /// No more is written; the peer reads what there is and then the end.
  virtual void shutdown_writing() = 0;

  /// Ends every call in progress.
  virtual void shutdown() = 0;

  virtual std::string peer() const = 0;

  /// Bytes a second at which what is large arrived lately; 0: not known, as where it is there
  /// before anybody looks. Any thread.
  virtual double arrival_rate() const { return 0; }
  /// That rate is of what arrives from now on, once that is enough.
  virtual void measure_arrivals_anew() {}
};

}  // namespace outrigger::transport
