#include <cstring>

// A library in NVML's place, with one GPU at 0000:65:00.0 that knows no temperature.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

static int starts = 0;

int nvmlInit_v2() {
  ++starts;
  return 0;
}
int nvmlShutdown() {
  --starts;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  if (std::strcmp(bus_id, "0000:65:00.0") != 0) return 6;  // NVML_ERROR_NOT_FOUND
  *device = &starts;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, void* out) {
  auto* utilization = static_cast<Utilization*>(out);
  *utilization = {73, 20};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, void* out) {
  auto* memory = static_cast<Memory*>(out);
  *memory = {1000, 400, 600};
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 512'500;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }  // NVML_ERROR_NOT_SUPPORTED
int nvmlDeviceGetTotalEccErrors(void*, int type, int counter, unsigned long long* errors) {
  *errors = type == 1 && counter == 0 ? 2 : 99;
  return 0;
}
}
// NOLINTEND(readability-identifier-naming)
