#include "gpu-server/device/gpu_phases.h"

#include <algorithm>
#include <chrono>

#include "common/log.h"
#include "nn/cuda/memory_book.h"

namespace outrigger::gpu_server {
namespace {

telemetry::Counter& phase(telemetry::Metrics& metrics, const char* name) {
  return metrics.counter({"outrigger_gpu_phase_seconds_total",
                          "Time of the device in steps, by what it did.",
                          {"phase"}},
                         {{"phase", name}});
}

}  // namespace

GpuPhases::GpuPhases(telemetry::Metrics& metrics, TellMemory memory, TellMemory kept)
    : metrics_(metrics),
      memory_(std::move(memory)),
      kept_(std::move(kept)),
      input_(phase(metrics, "input")),
      forward_(phase(metrics, "forward")),
      backward_(phase(metrics, "backward")),
      optimizer_(phase(metrics, "optimizer")),
      idle_(phase(metrics, "idle")) {}

void GpuPhases::step(const training::StepReport& report) {
  if (!report.device) return;
  const nn::ResidentTimes& times = *report.device;
  input_.add(times.input);
  forward_.add(times.forward);
  backward_.add(times.backward);
  optimizer_.add(times.optimizer);
  idle_.add(std::max(0.0, stood_still(report) - times.input));
  // Everything is taken in the first step; a plan that moves takes more, later.
  constexpr uint64_t kEvery = 256;
  if (steps_++ % kEvery != 0) return;
  tell_memory();
  tell_kept();
}

void GpuPhases::tell_memory() {
  const auto uses = memory_();
  for (const auto& use : uses) {
    metrics_
        .gauge({"outrigger_gpu_taken_bytes",
                "Memory of the device that this process has taken.",
                {"for"}},
               {{"for", use.what}})
        .set(static_cast<double>(use.bytes));
  }
  if (steps_ == 1) log::info("memory of the GPU: {}", nn::cuda::describe(uses));
}

// Of many layers the first tell enough; those that were among them before have what they have now.
void GpuPhases::tell_kept() {
  constexpr size_t kMost = 10;
  const auto uses = kept_();
  for (size_t i = 0; i < std::min(kMost, uses.size()); ++i) kept_layers_.insert(uses[i].what);
  for (const std::string& layer : kept_layers_) {
    const auto use = std::ranges::find(uses, layer, &nn::cuda::MemoryUse::what);
    metrics_
        .gauge({"outrigger_gpu_kept_bytes",
                "Memory from forward to backward, of the layers with the most in the largest pass.",
                {"layer"}},
               {{"layer", layer}})
        .set(use == uses.end() ? 0.0 : static_cast<double>(use->bytes));
  }
  if (steps_ == 1 && !uses.empty())
    log::info("of it, layers keep from forward to backward {}", nn::cuda::describe(uses, kMost));
}

double stood_still(const training::StepReport& report) {
  if (!report.device) return 0;
  const double took = std::chrono::duration<double>(report.took).count();
  const nn::ResidentTimes& times = *report.device;
  return std::max(0.0, took - times.forward - times.backward - times.optimizer);
}

feed::StallTimes hold_to(const feed::StallTimes& stalls, double waited) {
  const double all = feed::total(stalls);
  feed::StallTimes held = stalls;
  if (all <= waited || all <= 0) return held;
  for (double& seconds : held) seconds *= waited / all;
  return held;
}

training::StepReport as_the_device_waited(training::StepReport report) {
  if (!report.device) return report;
  const auto waited =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(stood_still(report)));
  const Duration all = report.waited_for_input + report.waited_for_gradients;
  const auto hold = [&](Duration& wait) {
    wait = Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) *
                                               to_seconds(waited) / to_seconds(all)));
  };
  if (all > waited) {
    hold(report.waited_for_input);
    hold(report.waited_for_gradients);
  }
  // The device is often still at work when the host begins to wait for the others.
  report.waited_for_ranks = std::min(report.waited_for_ranks, waited - std::min(waited, all));
  return report;
}

}  // namespace outrigger::gpu_server
