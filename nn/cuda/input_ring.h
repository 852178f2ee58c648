#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "nn/cuda/engine.h"
#include "nn/program.h"

namespace outrigger::nn::cuda {

/// Places through which inputs of passes come to the device, beside the pass before: the host fills
/// pinned memory, a copy of its own queue brings it over, and a pass waits for that copy alone. One
/// thread, which holds the engine.
class InputRing {
 public:
  /// What one pass is given on the device.
  struct Input {
    const std::byte* input = nullptr;
    const std::byte* slots = nullptr;
    const std::byte* labels = nullptr;
  };

  /// Of passes of `batch` samples of `sample_bytes` each.
  InputRing(std::shared_ptr<Engine> engine, int64_t batch, size_t sample_bytes);

  /// Brings what fills one pass, in parts one behind another. Waits only for the copy that the
  /// place had before. At most kPlaces inputs that were not taken.
  void put(std::span<const ForwardInput> parts);
  /// The oldest that was put: what is queued from now on has it.
  Input take();
  /// Its place is free behind what is queued so far.
  void release();
  size_t waiting() const { return put_ - taken_; }

  static constexpr size_t kPlaces = 2;

 private:
  struct Place {
    PinnedMemory host;
    DeviceMemory device;
    std::unique_ptr<Mark> copied, used;
  };
  Place& place(size_t turn) { return places_[turn % kPlaces]; }

  const std::shared_ptr<Engine> engine_;
  const size_t batch_, sample_bytes_, slots_at_, labels_at_;
  std::array<Place, kPlaces> places_;
  size_t put_ = 0, taken_ = 0, released_ = 0;
};

}  // namespace outrigger::nn::cuda
