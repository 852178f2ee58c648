#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "telemetry/trace.h"
#include "training/trainer/reducer.h"

namespace outrigger::gpu_server {

/// A reducer whose sums are drawn in a trace, in a row of their own: how far they go beside the
/// backward pass, and how long for.
class TracedReducer final : public training::Reducer {
 public:
  /// Both must outlive this.
  TracedReducer(training::Reducer& reducer, telemetry::Trace& trace)
      : reducer_(reducer), trace_(trace) {
    trace_.name_track(kRow, "ranks");
  }

  uint32_t rank() const override { return reducer_.rank(); }
  uint32_t replicas() const override { return reducer_.replicas(); }
  void all_reduce(std::span<float> values) override {
    const auto span = trace_.span("all-reduce", kRow);
    reducer_.all_reduce(values);
  }
  void all_reduce_bfloat16(std::span<float> values) override {
    const auto span = trace_.span("all-reduce", kRow);
    reducer_.all_reduce_bfloat16(values);
  }
  void broadcast(std::span<std::byte> bytes) override {
    const auto span = trace_.span("broadcast", kRow);
    reducer_.broadcast(bytes);
  }

 private:
  static constexpr int kRow = 3;  // those before it are the Timeline's

  training::Reducer& reducer_;
  telemetry::Trace& trace_;
};

}  // namespace outrigger::gpu_server
