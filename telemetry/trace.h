#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
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

struct TraceOptions {
  int process = 0;                    // its number in the picture: the rank
  size_t capacity = size_t{1} << 16;  // events that are kept, the newest; 0: nothing is recorded
  /// What a clock on the wall shows when the trace is made. Traces of several processes go by it.
  std::chrono::system_clock::time_point made = std::chrono::system_clock::now();
};

/// The last events of a process, to be looked at in a trace viewer (chrome://tracing,
/// ui.perfetto.dev). Recording takes a short lock and never allocates. Thread-safe.
class Trace {
 public:
  /// `clock` must outlive this.
  Trace(std::string process_name, const Clock& clock, const TraceOptions& options = {});

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

  /// The events in Chrome's trace format (JSON), in microseconds since the Unix epoch, so that
  /// traces of several processes may be put together.
  std::string json() const;
  /// Writes json() atomically. IoError.
  void write(const std::filesystem::path& path) const;

 private:
  const std::string process_name_;
  const int process_;
  const Clock& clock_;
  const Duration to_epoch_;  // from the clock's time to the Unix epoch's
  mutable std::mutex mutex_;
  std::vector<TraceEvent> ring_;
  size_t recorded_ = 0;  // ever; the newest is at (recorded_ − 1) modulo the ring's size
  std::map<int, std::string> tracks_;
};

/// One trace of what several processes of one machine have written. IoError.
std::string merged_traces(std::span<const std::filesystem::path> files);

}  // namespace outrigger::telemetry
