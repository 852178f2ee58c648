#pragma once

#include <cstddef>
#include <span>

#include "common/clock.h"
#include "common/thread_pool.h"
#include "feed/messages.h"

namespace outrigger::worker {

/// Makes one sample's pixels. Thread-safe.
class PixelSource {
 public:
  virtual ~PixelSource() = default;
  /// Writes uint8 {H, W, C}; returns how long the bytes were read for. `evaluation`: the centre
  /// crop, and the sample lies in the validation set. Throws InvalidInput where the bytes are no
  /// image (data::NoImage where they are none in any slot), IoError where they could not be read.
  virtual Duration make(const feed::LeaseSample& sample, bool evaluation,
                        std::span<std::byte> pixels) = 0;
  /// These will be wanted soon; returns how long it took to say so where they lie. Not while a loop
  /// of `threads` is under way.
  virtual Duration prefetch(std::span<const feed::LeaseSample> /*samples*/, bool /*evaluation*/,
                            ThreadPool& /*threads*/) {
    return Duration{0};
  }
};

}  // namespace outrigger::worker
