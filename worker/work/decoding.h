#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/memory_source.h"
#include "common/tensor.h"
#include "common/thread_pool.h"
#include "feed/messages.h"
#include "worker/work/pixel_source.h"
#include "worker/work/stopwatch.h"

namespace outrigger::worker {

/// The pixels of a lease in the making, by any number of threads at once, and what went wrong on
/// the way. Thread-safe but for prefetch() and the claiming, which are one thread's at a time, and
/// for what can be asked only once it is done.
class Decoding {
 public:
  /// Of images {H, W, C}. `memory`: where to, null for ordinary memory.
  Decoding(std::shared_ptr<const feed::Lease> lease, const Shape& image, MemorySource* memory);

  /// Has the source prefetch them all, once; the time for it counts as reading. Before the first is
  /// claimed. Returns seconds of this thread's processor.
  double prefetch(PixelSource& source, ThreadPool& threads,
                  const std::optional<ProcessorClock>& neighbour);
  bool prefetched() const { return prefetched_; }

  /// The place of a sample that nobody makes yet; who gets it must make it.
  std::optional<size_t> claim();
  /// How many of them are left, if any are wanted.
  size_t unclaimed() const;
  struct Made {
    double clock = 0;      // seconds that it took
    double processor = 0;  // likewise of this thread's processor
    bool last = false;     // with it the lease is done
  };
  /// Makes it. `neighbour`: a thread that works on the same cores, whose time does not count.
  Made make(size_t position, PixelSource& source, const std::optional<ProcessorClock>& neighbour);
  /// What is not claimed yet is not wanted.
  void give_up() { wanted_ = false; }

  /// All are made, or one could not be: then the others are of no use.
  bool done() const { return done_; }

  // Once it is done.

  /// Throws what was thrown but InvalidInput and IoError.
  void rethrow() const;
  const std::optional<std::string>& read_error() const { return read_error_; }
  /// Which samples are no images, in order.
  std::vector<feed::Broken::Item> take_broken();
  /// Sets decode and read, in seconds with all of so many threads, as a quota slows them down.
  void tell(feed::WorkTimes& times, double slowdown, int threads) const;
  /// uint8 {n, H, W, C}
  const Tensor& pixels() const { return pixels_; }
  Tensor take_pixels() { return std::move(pixels_); }
  TimePoint made_at() const { return made_at_; }

 private:
  /// Notes what went wrong while a sample was made, from within a handler; whether the others are
  /// still of use.
  bool note_failure(size_t position);

  const std::shared_ptr<const feed::Lease> lease_;
  Tensor pixels_;
  const size_t sample_bytes_;
  bool prefetched_ = false;
  std::atomic<size_t> claimed_ = 0;
  std::atomic<bool> wanted_ = true;
  std::atomic<bool> done_ = false;
  mutable std::mutex mutex_;  // of what threads tell
  size_t made_ = 0;
  Spent spent_;      // over all threads
  double read_ = 0;  // seconds of that
  TimePoint made_at_;
  std::vector<feed::Broken::Item> broken_;
  std::optional<std::string> read_error_;
  std::exception_ptr failure_;
};

/// Whether it is for an evaluation, not for training.
bool is_evaluation(const feed::Lease& lease);

/// FNV-1a over 64-bit words: tells two micro-batches' pixels apart in the audit; not cryptographic.
uint64_t pixel_hash(std::span<const std::byte> pixels);

}  // namespace outrigger::worker
