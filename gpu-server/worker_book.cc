#include "gpu-server/worker_book.h"

#include <algorithm>
#include <variant>

namespace outrigger::gpu_server {
namespace {

/// So many results make what a worker was like when it was new.
constexpr uint64_t kFirst = 8;

/// The newest of the values weighs so much.
void average(double& mean, float value, double newest) {
  if (value <= 0) return;
  mean = mean == 0 ? value : (1 - newest) * mean + newest * static_cast<double>(value);
}

/// Decoding takes less than a period of a CPU quota, in which a worker runs or not, so it takes
/// many for a mean.
double newest_decode(uint64_t results) {
  constexpr double kLeast = 0.1;
  return std::max(kLeast, 1 / static_cast<double>(results));
}

}  // namespace

double WorkerMeasures::work() const {
  constexpr double kLeast = 0.05;  // reading is a part of it, but measured by another clock
  return std::max(decode - read, kLeast * decode);
}

void WorkerBook::note(const feed::WorkerMessage& message) {
  const feed::WorkTimes* times = nullptr;
  if (const auto* batch = std::get_if<feed::MicroBatch>(&message)) times = &batch->times;
  const auto* gradient = std::get_if<feed::StemGradient>(&message);
  if (gradient != nullptr) times = &gradient->times;
  if (times == nullptr) return;
  ++(gradient == nullptr ? measures_.micro_batches : measures_.stem_gradients);
  if (gradient == nullptr) {
    const double newest = newest_decode(measures_.micro_batches);
    average(measures_.decode, times->decode, newest);
    measures_.read += newest * (static_cast<double>(times->read) - measures_.read);
  }
  if (measures_.micro_batches <= kFirst) {
    measures_.first_decode = measures_.decode;
    measures_.first_work = measures_.work();
  }
  if (times->cut > 0) {
    constexpr double kNewest = 0.25;
    auto& stem = measures_.stems[times->cut];
    if (gradient == nullptr) average(stem.forward, times->forward, kNewest);
    average(stem.backward, times->backward, kNewest);
    stem.decode = measures_.work();
  }
  if (times->bytes_per_second > 0) sends_at_ = times->bytes_per_second;
}

WorkerMeasures WorkerBook::measures(const transport::LinkStats& link) const {
  WorkerMeasures measures = measures_;
  const bool both = sends_at_ > 0 && link.send_rate > 0;
  measures.bytes_per_second =
      both ? std::min(link.send_rate, sends_at_) : std::max(link.send_rate, sends_at_);
  measures.latency = to_seconds(link.round_trip) / 2;
  return measures;
}

}  // namespace outrigger::gpu_server
