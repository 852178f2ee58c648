#include "telemetry/gpu_metrics.h"

namespace outrigger::telemetry {
namespace {

const MetricInfo kBusy{"outrigger_gpu_utilization_ratio",
                       "Share of time in which the GPU ran anything, as its driver samples it.",
                       {}};
const MetricInfo kMemoryUsed{
    "outrigger_gpu_memory_used_bytes", "Memory of the GPU in use, by all processes.", {}};
const MetricInfo kMemoryTotal{"outrigger_gpu_memory_total_bytes", "Memory that the GPU has.", {}};
const MetricInfo kPower{"outrigger_gpu_power_watts", "Power that the GPU draws.", {}};
const MetricInfo kTemperature{"outrigger_gpu_temperature_celsius", "Temperature of the GPU.", {}};
const MetricInfo kErrors{"outrigger_gpu_uncorrected_memory_errors",
                         "Errors of the GPU's memory that could not be corrected, since its driver "
                         "started.",
                         {}};

void set(Metrics& metrics, const MetricInfo& info, const std::optional<double>& value) {
  if (value) {
    metrics.gauge(info).set(*value);
  } else {
    metrics.gauge(info).withdraw();
  }
}

}  // namespace

GpuMetrics::GpuMetrics(Metrics& metrics, std::unique_ptr<Nvml> nvml, std::string bus_id,
                       Duration every)
    : metrics_(metrics), nvml_(std::move(nvml)), bus_id_(std::move(bus_id)), every_(every) {
  read();
  thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
}

void GpuMetrics::read() {
  // Of a GPU that has fallen off the bus nothing is known.
  const auto usage = nvml_->usage(bus_id_).value_or(GpuUsage());
  set(metrics_, kBusy, usage.busy_share);
  set(metrics_, kMemoryUsed, usage.memory_used_bytes);
  set(metrics_, kMemoryTotal, usage.memory_total_bytes);
  set(metrics_, kPower, usage.power_watts);
  set(metrics_, kTemperature, usage.temperature_celsius);
  set(metrics_, kErrors, usage.uncorrected_errors);
}

void GpuMetrics::loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, every_, [] { return false; });
    if (!stop.stop_requested()) read();
  }
}

}  // namespace outrigger::telemetry
