#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace outrigger {

/// Core-seconds a second that this process may use in the long run: its CPU quota, at most the
/// cores of its affinity mask.
double lasting_cores();

/// The cores of its affinity mask.
int cores_of_mask();

/// Of these, rounded up, those that it may use at once; at least 1.
int available_cores();

/// A fixed set of threads that run the tasks of one loop at a time. The caller's thread takes part,
/// so a pool of size 1 has no thread of its own. Waiting is passive after a short spin. One loop at
/// a time: calls from several threads are serialised. Tasks must not call back into the pool (that
/// aborts). Between loops its own threads may have other work, of which a loop waits for no piece:
/// who is at one comes later, and the others do his part.
class ThreadPool {
 public:
  /// Throws IoError where the machine gives it no more threads.
  explicit ThreadPool(int size);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Runs task(0) … task(count − 1), each once, in any order and on any thread; returns when all
  /// are done. The first exception a task throws is thrown here, after the others have ended. Does
  /// not allocate.
  template <typename Task>
  void parallel_for(int count, const Task& task) {
    run(
        count, [](const void* context, int index) { (*static_cast<const Task*>(context))(index); },
        &task);
  }

  /// What the pool's own threads, all but one, do between loops: each calls `piece` again and again
  /// until it says that nothing is left, and once more after wake_idle(). It must not throw. Null:
  /// nothing. Returns when no thread is at a piece of the former.
  void set_idle_work(std::function<bool()> piece);
  /// There may be some now.
  void wake_idle();
  /// Whether they may begin with a piece, as at first: not while loops follow each other, which
  /// want all threads.
  void allow_idle_work(bool allowed);

 private:
  using Function = void (*)(const void* context, int index);
  void stop();
  void run(int count, Function function, const void* context);
  void thread_main();
  void tell();
  void work();
  bool do_idle_work();
  void run_task(int index);
  int claim();

  static constexpr int kStopping = -1;

  const int size_;
  std::mutex one_loop_;
  // The loop in progress. Written by run() while no task is claimed, read by whoever has claimed
  // one: claiming acquires what run() released into unclaimed_, and run() returns only when no
  // claim is left.
  Function function_ = nullptr;
  const void* context_ = nullptr;
  int count_ = 0;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  // Apart, since both are written for every task: tasks nobody has taken yet (or kStopping), and
  // how often there was something new for threads that wait; tasks not done yet.
  alignas(64) std::atomic<int> unclaimed_ = 0;
  std::atomic<uint32_t> news_ = 0;
  alignas(64) std::atomic<int> unfinished_ = 0;
  std::shared_mutex idle_mutex_;  // shared by those who are at a piece
  std::function<bool()> idle_work_;
  std::atomic<bool> idle_allowed_ = true;
  std::vector<std::jthread> threads_;
};

}  // namespace outrigger
