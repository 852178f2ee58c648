#include "telemetry/nvml.h"

#include <dlfcn.h>

namespace outrigger::telemetry {
namespace {

// As nvml.h has them; 0 is success everywhere.
using Device = void*;
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kGpuSensor = 0;         // NVML_TEMPERATURE_GPU
constexpr int kUncorrected = 1;       // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kSinceDriverStart = 0;  // NVML_VOLATILE_ECC

struct Closer {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Closer>;

// The functions; a driver that is older than one of them has a null.
struct Functions {
  int (*start)() = nullptr;
  int (*stop)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*by_bus_id)(const char*, Device*) = nullptr;
  int (*utilization)(Device, void*) = nullptr;  // of Utilization
  int (*memory)(Device, void*) = nullptr;       // of Memory
  int (*power)(Device, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*errors)(Device, int, int, unsigned long long*) = nullptr;
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

Functions functions_of(void* library) {
  Functions f;
  find(library, "nvmlInit_v2", f.start);
  find(library, "nvmlShutdown", f.stop);
  find(library, "nvmlErrorString", f.error_text);
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", f.by_bus_id);
  find(library, "nvmlDeviceGetUtilizationRates", f.utilization);
  find(library, "nvmlDeviceGetMemoryInfo", f.memory);
  find(library, "nvmlDeviceGetPowerUsage", f.power);
  find(library, "nvmlDeviceGetTemperature", f.temperature);
  find(library, "nvmlDeviceGetTotalEccErrors", f.errors);
  return f;
}

class LoadedNvml final : public Nvml {
 public:
  LoadedNvml(Library library, const Functions& functions)
      : library_(std::move(library)), f_(functions) {}
  ~LoadedNvml() override { f_.stop(); }

  std::optional<GpuUsage> usage(const std::string& bus_id) override {
    Device device = nullptr;
    if (f_.by_bus_id(bus_id.c_str(), &device) != 0) return std::nullopt;
    GpuUsage usage;
    Utilization utilization{};
    if (f_.utilization != nullptr && f_.utilization(device, &utilization) == 0)
      usage.busy_share = utilization.gpu / 100.0;
    Memory memory{};
    if (f_.memory != nullptr && f_.memory(device, &memory) == 0) {
      usage.memory_used_bytes = static_cast<double>(memory.used);
      usage.memory_total_bytes = static_cast<double>(memory.total);
    }
    unsigned value = 0;
    if (f_.power != nullptr && f_.power(device, &value) == 0) usage.power_watts = value / 1000.0;
    if (f_.temperature != nullptr && f_.temperature(device, kGpuSensor, &value) == 0)
      usage.temperature_celsius = value;
    unsigned long long errors = 0;
    if (f_.errors != nullptr && f_.errors(device, kUncorrected, kSinceDriverStart, &errors) == 0)
      usage.uncorrected_errors = static_cast<double>(errors);
    return usage;
  }

 private:
  const Library library_;
  const Functions f_;
};

}  // namespace

std::unique_ptr<Nvml> Nvml::load(std::string& why, const std::string& library) {
  Library opened(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (opened == nullptr) {
    why = dlerror();
    return nullptr;
  }
  const Functions functions = functions_of(opened.get());
  if (functions.start == nullptr || functions.stop == nullptr || functions.by_bus_id == nullptr) {
    why = library + " has not what NVML has";
    return nullptr;
  }
  if (const int status = functions.start(); status != 0) {
    why = functions.error_text == nullptr ? "status " + std::to_string(status)
                                          : functions.error_text(status);
    return nullptr;
  }
  return std::make_unique<LoadedNvml>(std::move(opened), functions);
}

}  // namespace outrigger::telemetry
