#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"

namespace outrigger::telemetry {

/// One thing that took time.
struct TraceEvent {
  const char* name = "";  // a literal: it is kept, not copied
  int track = 0;          // a row of the picture: a thread, a worker
  TimePoint begin;
  Duration length{0};
  int64_t step = -1;   // −1: none
  int64_t index = -1;  // of the micro-batch; −1: none
};

/// The last `capacity` events of a process, to be looked at in a trace viewer (chrome://tracing,
/// ui.perfetto.dev). Recording takes a short lock and never allocates. Thread-safe.
class Trace {
 public:
  /// With capacity 0 nothing is recorded. `clock` must outlive this.
  Trace(std::string process_name, const Clock& clock, size_t capacity = size_t{1} << 16);

  /// Records from its construction to its destruction; the trace must outlive it.
  class Span {
   public:
    Span(Trace& trace, const char* name, int track, int64_t step, int64_t index);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Trace& trace_;
    TraceEvent event_;
  };

  /// What a track is called in the picture.
  void name_track(int track, std::string name);
  [[nodiscard]] Span span(const char* name, int track = 0, int64_t step = -1, int64_t index = -1) {
    return {*this, name, track, step, index};
  }
  void record(const TraceEvent& event);

  /// The events in Chrome's trace format (JSON); times count from this object's construction.
  std::string json() const;
  /// Writes json() atomically. IoError.
  void write(const std::filesystem::path& path) const;

 private:
  const std::string process_name_;
  const Clock& clock_;
  const TimePoint start_;
  mutable std::mutex mutex_;
  std::vector<TraceEvent> ring_;
  size_t recorded_ = 0;  // ever; the newest is at (recorded_ − 1) modulo the ring's size
  std::map<int, std::string> tracks_;
};

}  // namespace outrigger::telemetry
