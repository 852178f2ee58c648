#include "telemetry/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/file.h"

namespace outrigger::telemetry {
namespace {

// A complete event ("ph": "X") of the Trace Event Format (Google, 2016). Whole microseconds, begin
// and end rounded alike: so many digits do not fit into a double with a fraction, and what follows
// one another must not overlap.
nlohmann::json to_json(const TraceEvent& event, Duration to_epoch, int process) {
  using std::chrono::microseconds;
  const Duration begin = event.begin.time_since_epoch() + to_epoch;
  const auto since = std::chrono::floor<microseconds>(begin);
  const auto until = std::chrono::floor<microseconds>(begin + event.length);
  nlohmann::json json{{"name", event.name},  {"ph", "X"},
                      {"pid", process},      {"tid", event.track},
                      {"ts", since.count()}, {"dur", (until - since).count()}};
  if (event.step >= 0) json["args"]["step"] = event.step;
  if (event.index >= 0) json["args"]["index"] = event.index;
  return json;
}

nlohmann::json name_event(const char* what, int process, int track, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

Trace::Trace(std::string process_name, const Clock& clock, const TraceOptions& options)
    : process_name_(std::move(process_name)),
      process_(options.process),
      clock_(clock),
      to_epoch_(std::chrono::duration_cast<Duration>(options.made.time_since_epoch()) -
                clock.now().time_since_epoch()),
      ring_(options.capacity) {}

Trace::Span::Span(Trace& trace, const char* name, int track, int64_t step, int64_t index)
    : trace_(trace), event_{name, track, {}, Duration(0), step, index} {
  if (!trace_.ring_.empty()) event_.begin = trace_.clock_.now();
}

Trace::Span::~Span() {
  if (trace_.ring_.empty()) return;
  event_.length = trace_.clock_.now() - event_.begin;
  trace_.record(event_);
}

void Trace::name_track(int track, std::string name) {
  const std::scoped_lock lock(mutex_);
  tracks_[track] = std::move(name);
}

void Trace::record(const TraceEvent& event) {
  if (ring_.empty()) return;
  const std::scoped_lock lock(mutex_);
  ring_[recorded_ % ring_.size()] = event;
  ++recorded_;
}

std::string Trace::json() const {
  const std::scoped_lock lock(mutex_);
  nlohmann::json events =
      nlohmann::json::array({name_event("process_name", process_, 0, process_name_)});
  for (const auto& [track, name] : tracks_)
    events.push_back(name_event("thread_name", process_, track, name));
  const size_t kept = std::min(recorded_, ring_.size());
  for (size_t i = recorded_ - kept; i < recorded_; ++i) {
    events.push_back(to_json(ring_[i % ring_.size()], to_epoch_, process_));
  }
  return nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

void Trace::write(const std::filesystem::path& path) const { write_file_atomically(path, json()); }

std::string merged_traces(std::span<const std::filesystem::path> files) {
  std::string events;
  for (const auto& file : files) {
    const auto trace = nlohmann::json::parse(read_file(file));
    for (const auto& event : trace.at("traceEvents")) {
      if (!events.empty()) events += ',';
      events += event.dump();
    }
  }
  return R"({"displayTimeUnit":"ms","traceEvents":[)" + events + "]}";
}

}  // namespace outrigger::telemetry
