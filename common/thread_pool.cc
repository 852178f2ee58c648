#include "common/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <fstream>
#include <optional>
#include <string>

namespace outrigger {
namespace {

// Quota / period of the cgroup this process sees at the mount's root; absent: unlimited.
std::optional<double> cgroup_cores() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double value = 0;
  if (v1_quota >> value && v1_period >> period && value > 0 && period > 0) return value / period;
  return std::nullopt;
}

}  // namespace

int available_cores() {
  cpu_set_t mask;
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) cores = CPU_COUNT(&mask);
  if (const auto quota = cgroup_cores()) cores = std::min(cores, static_cast<int>(std::ceil(*quota)));
  return std::max(1, cores);
}

ThreadPool::ThreadPool(int size) : size_(std::max(1, size)) {
  for (int i = 1; i < size_; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { thread_main(stop); });
  }
}

ThreadPool::~ThreadPool() {
  for (auto& thread : threads_) thread.request_stop();
}

void ThreadPool::run(int count, Function function, const void* context) {
  const std::scoped_lock one(one_loop_);
  std::unique_lock lock(mutex_);
  function_ = function;
  context_ = context;
  count_ = count;
  next_ = 0;
  failure_ = nullptr;
  ++generation_;
  if (count > 1 && size_ > 1) wake_.notify_all();
  ++running_;
  lock.unlock();
  work();
  lock.lock();
  --running_;
  done_.wait(lock, [this] { return running_ == 0; });
  count_ = 0;
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::thread_main(std::stop_token stop) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [&] { return generation_ != seen && next_ < count_; })) {
    seen = generation_;
    ++running_;
    lock.unlock();
    work();
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

void ThreadPool::work() {
  while (true) {
    int index = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (next_ >= count_) return;
      index = next_++;
    }
    try {
      function_(context_, index);
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
}

}  // namespace outrigger
