#include "common/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/cgroup.h"
#include "common/error.h"
#include "common/thread_name.h"

namespace outrigger {
namespace {

// The pool whose task this thread runs now.
thread_local const ThreadPool* inside = nullptr;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until `waits(value)` is false and returns the value. Spins first, for 50 to 100
// microseconds on today's cores: longer than the gap between two loops of a step, and little enough
// to burn where threads outnumber cores.
template <typename T, typename Waits>
void wait_while(const std::atomic<T>& value, Waits waits) {
  constexpr int kSpins = 2000;
  T seen = value.load(std::memory_order_acquire);
  for (int spin = 0; waits(seen) && spin < kSpins; ++spin) {
    pause_core();
    seen = value.load(std::memory_order_acquire);
  }
  while (waits(seen)) {
    value.wait(seen, std::memory_order_acquire);
    seen = value.load(std::memory_order_acquire);
  }
}

}  // namespace

int cores_of_mask() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());
}

double lasting_cores() {
  double cores = cores_of_mask();
  if (const auto quota = cgroup_cores()) cores = std::min(cores, *quota);
  return cores;
}

int available_cores() { return std::max(1, static_cast<int>(std::ceil(lasting_cores()))); }

ThreadPool::ThreadPool(int size) : size_(std::max(1, size)) {
  try {
    for (int i = 1; i < size_; ++i) threads_.emplace_back([this] { thread_main(); });
  } catch (const std::exception& failure) {
    stop();
    throw IoError("cannot start " + std::to_string(size_) + " threads: " + failure.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  unclaimed_.store(kStopping);
  tell();
}

void ThreadPool::tell() {
  // In one order with the waiters' count, or notify_all() may see none of them.
  news_.fetch_add(1);
  news_.notify_all();
}

void ThreadPool::set_idle_work(std::function<bool()> piece) {
  const bool allowed = idle_allowed_.exchange(false);  // nobody begins another piece
  {
    const std::scoped_lock nobody_is_at_one(idle_mutex_);
    idle_work_ = std::move(piece);
  }
  if (allowed) allow_idle_work(true);
}

void ThreadPool::wake_idle() {
  if (size_ > 1) tell();
}

void ThreadPool::allow_idle_work(bool allowed) {
  idle_allowed_.store(allowed);
  if (allowed) wake_idle();
}

bool ThreadPool::do_idle_work() {
  if (!idle_allowed_.load(std::memory_order_acquire)) return false;
  const std::shared_lock lock(idle_mutex_);
  return idle_work_ != nullptr && idle_work_();
}

void ThreadPool::run(int count, Function function, const void* context) {
  ensure(inside != this, "a task called back into its own thread pool");
  if (count <= 0) return;
  const std::scoped_lock one(one_loop_);
  function_ = function;
  context_ = context;
  count_ = count;
  unfinished_.store(count, std::memory_order_relaxed);
  unclaimed_.store(count, std::memory_order_release);
  if (count > 1 && size_ > 1) tell();
  work();
  wait_while(unfinished_, [](int n) { return n != 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::thread_main() {
  name_thread("pool");
  while (true) {
    const uint32_t seen = news_.load();
    const int unclaimed = unclaimed_.load(std::memory_order_acquire);
    if (unclaimed == kStopping) return;
    if (unclaimed > 0) {
      work();
    } else if (!do_idle_work()) {
      wait_while(news_, [seen](uint32_t now) { return now == seen; });
    }
  }
}

void ThreadPool::work() {
  const ThreadPool* outer = std::exchange(inside, this);
  for (int index = claim(); index >= 0; index = claim()) run_task(index);
  inside = outer;
}

void ThreadPool::run_task(int index) {
  try {
    function_(context_, index);
  } catch (...) {
    const std::scoped_lock lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
}

// The next task of the loop in progress, or -1. Once a task is claimed the loop cannot end, so
// count_ holds still.
int ThreadPool::claim() {
  int left = unclaimed_.load(std::memory_order_acquire);
  while (left > 0) {
    if (unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      return count_ - left;
    }
  }
  return -1;
}

}  // namespace outrigger
