#include "gpu-server/device/shared_cores.h"

#include <algorithm>

namespace outrigger::gpu_server {

double busy_seconds(const training::StepReport& report) {
  return to_seconds(report.took - report.waited_for_input - report.waited_for_gradients -
                    report.waited_for_ranks);
}

double busy_without(double busy, double device, double worker) {
  return std::min(busy, std::max(busy - std::max(0.0, worker), device));
}

double SharedCores::busy_alone(const training::StepReport& report) const {
  const Times end = now();
  // While other ranks are waited for it may have worked as well.
  const Duration beside = end.worker - begin_.worker -
                          (end.worker_in_waits - begin_.worker_in_waits) - report.waited_for_ranks;
  return busy_without(busy_seconds(report), to_seconds(end.device - begin_.device),
                      to_seconds(beside));
}

}  // namespace outrigger::gpu_server
