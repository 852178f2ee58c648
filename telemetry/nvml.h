#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace outrigger::telemetry {

/// What a GPU's driver says of it at one moment; absent what it does not know.
struct GpuUsage {
  std::optional<double> busy_share;         // of the driver's last sampling period, 0 to 1
  std::optional<double> memory_used_bytes;  // by all processes
  std::optional<double> memory_total_bytes;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> uncorrected_errors;  // of its memory, since the driver started
};

/// NVIDIA's management library, loaded from the driver at run time
/// (docs.nvidia.com/deploy/nvml-api), so that a program that uses it starts without one.
/// Thread-safe as NVML is.
class Nvml {
 public:
  /// Null where the library is not there or does not start; `why` then says why.
  static std::unique_ptr<Nvml> load(std::string& why,
                                    const std::string& library = "libnvidia-ml.so.1");
  virtual ~Nvml() = default;
  /// A GPU by its place on the bus as CUDA spells it, "0000:65:00.0". Nothing where there is none.
  virtual std::optional<GpuUsage> usage(const std::string& bus_id) = 0;
};

}  // namespace outrigger::telemetry
