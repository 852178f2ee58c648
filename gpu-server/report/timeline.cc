#include "gpu-server/report/timeline.h"

#include <algorithm>
#include <variant>

#include "feed/ledger.h"

namespace outrigger::gpu_server {
namespace {

/// Rows of the picture; 0 and 1 are the server's own and the trainer's waits.
constexpr int kDevice = 2;
int cores_of(feed::WorkerId worker) { return 10 + 3 * static_cast<int>(worker); }
int link_of(feed::WorkerId worker) { return cores_of(worker) + 1; }
int link_to(feed::WorkerId worker) { return cores_of(worker) + 2; }

Duration duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Duration on_the_wire(double bytes, const WorkerMeasures& link) {
  if (link.bytes_per_second <= 0) return Duration{0};
  return duration(bytes / link.bytes_per_second + link.latency);
}

}  // namespace

std::string trace_name(int rank) {
  return rank == 0 ? "trace.json" : "trace-" + std::to_string(rank) + ".json";
}

Timeline::Timeline(telemetry::Trace& trace) : trace_(trace) {
  trace_.name_track(kDevice, "device");
}

void Timeline::device_takes(uint64_t step, uint32_t index, TimePoint now) {
  device_is_done(now);
  taken_ = {step, index, now};
}

void Timeline::device_is_done(TimePoint now) {
  if (!taken_) return;
  trace_.record({"micro-batch", kDevice, taken_->since, now - taken_->since,
                 static_cast<int64_t>(taken_->step), taken_->index});
  taken_.reset();
}

void Timeline::joined(feed::WorkerId worker, const std::string& name) {
  trace_.name_track(cores_of(worker), name);
  trace_.name_track(link_of(worker), name + ", link");
  trace_.name_track(link_to(worker), name + ", link from the server");
}

void Timeline::posted(feed::WorkerId worker, const feed::ServerMessage& message,
                      const WorkerMeasures& link, TimePoint now) {
  const auto* weights = std::get_if<feed::StemWeights>(&message);
  const auto* gradient = std::get_if<feed::CutGradient>(&message);
  const bool tensor = gradient != nullptr && gradient->gradient != nullptr;
  if (weights == nullptr && !tensor) return;
  const double bytes =
      tensor
          ? feed::bytes_on_wire(*gradient->gradient, gradient->wire)
          : static_cast<double>((weights->parameter_count + weights->buffer_count) * sizeof(float));
  const Duration wire = on_the_wire(bytes, link);
  if (wire <= Duration{0}) return;
  TimePoint& taken = downward_[worker];
  const TimePoint begin = std::max(now, taken);
  taken = begin + wire - duration(link.latency);  // the next one need not wait for the way
  const auto step = tensor ? static_cast<int64_t>(gradient->key.step) : int64_t{-1};
  trace_.record({tensor ? "cut gradient" : "weights", link_to(worker), begin, wire, step,
                 tensor ? gradient->key.index : 0});
}

void Timeline::arrived(feed::WorkerId worker, const feed::WorkerMessage& message,
                       const WorkerMeasures& link, TimePoint now) {
  if (const auto* scores = std::get_if<feed::Scores>(&message)) {
    const Duration took = duration(scores->times.forward);
    trace_.record({"score", cores_of(worker), now - took, took, -1, scores->key.index});
    return;
  }
  const auto* batch = std::get_if<feed::MicroBatch>(&message);
  const auto* gradient = std::get_if<feed::StemGradient>(&message);
  if (batch == nullptr && gradient == nullptr) return;
  const feed::WorkKey& key = batch != nullptr ? batch->key : gradient->key;
  const feed::WorkTimes& times = batch != nullptr ? batch->times : gradient->times;
  double bytes = 0;
  if (batch != nullptr && batch->tensor != nullptr)
    bytes = feed::bytes_on_wire(*batch->tensor, batch->wire);
  if (gradient != nullptr && gradient->gradients != nullptr)
    bytes = static_cast<double>(gradient->gradients->size() * sizeof(float));
  const Duration wire = on_the_wire(bytes, link);
  const TimePoint sent = now - wire;
  const auto record = [&](const char* what, int track, TimePoint end, Duration length) {
    trace_.record({what, track, end - length, length, static_cast<int64_t>(key.step), key.index});
  };
  if (wire > Duration{0}) record("send", link_of(worker), now, wire);
  if (gradient != nullptr) {
    record("stem backward", cores_of(worker), sent, duration(times.backward));
    return;
  }
  if (times.cut > 0) record("stem forward", cores_of(worker), sent, duration(times.forward));
  record("decode", cores_of(worker), sent - duration(times.decoded_ago), duration(times.decode));
}

}  // namespace outrigger::gpu_server
