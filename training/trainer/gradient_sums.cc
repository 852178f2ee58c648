#include "training/trainer/gradient_sums.h"

#include <algorithm>
#include <utility>

#include "common/error.h"

namespace outrigger::training {

GradientSums::GradientSums(Reducer& reducer, std::span<float> gradients,
                           const GradientSumsOptions& options)
    : reducer_(reducer),
      gradients_(gradients),
      options_(options),
      ready_(gradients.size()),
      summed_(gradients.size()),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

GradientSums::~GradientSums() = default;

void GradientSums::ready_from(size_t first) {
  const std::scoped_lock lock(mutex_);
  ensure(first <= ready_, "what is ready stays so");
  ready_ = first;
  // A pass tells of every few layers, and few of them complete a bucket.
  if (summed_ > 0 && ready_ <= next()) changed_.notify_all();
}

void GradientSums::wait() {
  ready_from(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return summed_ == 0 || failed_ != nullptr; });
  ready_ = summed_ = gradients_.size();
  if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
}

// Buckets begin at multiples of their size: the first to go is what is left at the end.
size_t GradientSums::next() const { return (summed_ - 1) / options_.bucket * options_.bucket; }

void GradientSums::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop,
                       [&] { return summed_ > 0 && failed_ == nullptr && ready_ <= next(); })) {
    const size_t first = next();
    const auto part = gradients_.subspan(first, summed_ - first);
    lock.unlock();
    std::exception_ptr failed;
    try {
      if (options_.bfloat16) {
        reducer_.all_reduce_bfloat16(part);
      } else {
        reducer_.all_reduce(part);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    failed_ = failed;
    summed_ = first;
    changed_.notify_all();
  }
}

}  // namespace outrigger::training
