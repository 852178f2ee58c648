#pragma once

#include <cstdint>
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

/// Who decodes, and whose time counts.
struct Crew {
  ThreadPool& threads;
  Quota& quota;
  /// A thread that works on the same cores, whose time is not in what decoding takes.
  const std::optional<ProcessorClock>& neighbour;
};

/// The pixels of a lease in the making, and what went wrong on the way.
class Decoding {
 public:
  /// For `samples` images {H, W, C}. `memory`: where to, null for ordinary memory.
  Decoding(size_t samples, const Shape& image, MemorySource* memory);

  /// Has the source prefetch them all, once; the time for it counts as reading.
  void prefetch(const feed::Lease& lease, PixelSource& source, const Crew& crew);
  bool prefetched() const { return prefetched_; }
  /// Makes the next few, one on each thread: so few that a gradient that arrives meanwhile does not
  /// wait for a whole micro-batch. times.read and times.decode are then what all so far took, as
  /// the quota has it, without what the neighbour had of the cores.
  void make_some(const feed::Lease& lease, PixelSource& source, const Crew& crew,
                 feed::WorkTimes& times);

  /// All are made, or one could not be read: then the others are of no use.
  bool done() const { return made_ == count_ || read_error_.has_value(); }
  const std::optional<std::string>& read_error() const { return read_error_; }
  /// Which samples are no images, in order.
  std::vector<feed::Broken::Item> take_broken();
  /// uint8 {n, H, W, C}
  const Tensor& pixels() const { return pixels_; }
  Tensor take_pixels() { return std::move(pixels_); }
  TimePoint made_at() const { return made_at_; }

 private:
  Tensor pixels_;
  size_t count_ = 0;
  size_t sample_bytes_ = 0;
  bool prefetched_ = false;
  size_t made_ = 0;  // samples tried so far
  Spent spent_;
  double read_ = 0;  // seconds of that
  TimePoint made_at_;
  std::vector<feed::Broken::Item> broken_;
  std::optional<std::string> read_error_;
};

/// Whether it is for an evaluation, not for training.
bool is_evaluation(const feed::Lease& lease);

/// FNV-1a over 64-bit words: tells two micro-batches' pixels apart in the audit; not cryptographic.
uint64_t pixel_hash(std::span<const std::byte> pixels);

}  // namespace outrigger::worker
