#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace outrigger {

/// Cores this process may use: the cgroup's CPU quota (v1 or v2) rounded up, at most the affinity mask; at least 1.
int available_cores();

/// A fixed set of threads that run the tasks of one loop at a time. The caller's thread takes part, so a pool of
/// size 1 has no thread of its own. Waiting is passive after a short spin. One loop at a time: calls from several
/// threads are serialised. Tasks must not call back into the pool.
class ThreadPool {
 public:
  explicit ThreadPool(int size);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Runs task(0) … task(count − 1), each once, in any order and on any thread; returns when all are done.
  /// The first exception a task throws is thrown here, after the others have ended. Does not allocate.
  template <typename Task>
  void parallel_for(int count, const Task& task) {
    run(count, [](const void* context, int index) { (*static_cast<const Task*>(context))(index); }, &task);
  }

 private:
  using Function = void (*)(const void* context, int index);
  void run(int count, Function function, const void* context);
  void thread_main(std::stop_token stop);
  void work();

  const int size_;
  std::mutex one_loop_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  Function function_ = nullptr;
  const void* context_ = nullptr;
  int count_ = 0;
  int next_ = 0;
  int running_ = 0;
  uint64_t generation_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

}  // namespace outrigger
