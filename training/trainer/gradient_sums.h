#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <span>
#include <thread>

#include "training/trainer/reducer.h"

namespace outrigger::training {

struct GradientSumsOptions {
  size_t bucket = size_t{1} << 20;  // floats of each
  bool bfloat16 = false;            // as Reducer::all_reduce_bfloat16
};

/// Sums gradients over the ranks in buckets, from the arena's end to its front, in a thread of its
/// own: what the last backward pass is done with goes while the rest of it runs, and what lies
/// behind the cut while the stems' gradients are still to come. Buckets and their order depend on
/// the arena's size alone, so ranks need not agree on when.
class GradientSums {
 public:
  /// `reducer` must outlive this and be used by nobody else between ready_from and wait.
  GradientSums(Reducer& reducer, std::span<float> gradients,
               const GradientSumsOptions& options = {});
  ~GradientSums();
  GradientSums(const GradientSums&) = delete;
  GradientSums& operator=(const GradientSums&) = delete;

  /// This rank's part of the gradients from this place to the end will not change before wait();
  /// returns at once. `first` only falls between two waits.
  void ready_from(size_t first);
  /// All of it is ready; returns when it is summed. Throws what the reducer threw.
  void wait();

 private:
  void work(const std::stop_token& stop);
  /// Where the next bucket to go begins; there is one.
  size_t next() const;

  Reducer& reducer_;
  const std::span<float> gradients_;
  const GradientSumsOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  size_t ready_;  // under mutex_, like what follows
  size_t summed_;
  std::exception_ptr failed_;
  std::jthread thread_;  // the last: it uses the others
};

}  // namespace outrigger::training
