#include "gpu-server/links/delivery.h"

namespace outrigger::gpu_server {

feed::Delivery delivery_of(const feed::WorkItem& item, const WorkerMeasures* remote,
                           double stem_bytes) {
  const bool gradient = item.stem_gradient != nullptr;
  const feed::WorkTimes& times = item.times;
  feed::Delivery delivery;
  delivery.read = static_cast<double>(times.read);
  delivery.decode = static_cast<double>(times.decode) - delivery.read;
  delivery.stem = static_cast<double>(gradient ? times.backward : times.forward);
  // Without staleness a trained stem has the step's own version.
  delivery.in_step = item.stem_trains && (gradient || item.stem_version == item.step);
  if (remote == nullptr || remote->bytes_per_second <= 0) return delivery;
  double bytes = item.sent_bytes;
  if (gradient) {
    bytes = static_cast<double>(item.stem_gradient->size() * sizeof(float));
    if (item.cut_gradient != nullptr)
      bytes += feed::bytes_on_wire(*item.cut_gradient, item.gradients);
  }
  delivery.link = bytes / remote->bytes_per_second + (gradient ? 2 : 1) * remote->latency;
  if (delivery.in_step && !gradient)
    delivery.weights = stem_bytes / remote->bytes_per_second + remote->latency;
  return delivery;
}

}  // namespace outrigger::gpu_server
