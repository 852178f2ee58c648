#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "nn/cuda/engine.h"
#include "nn/program.h"

namespace outrigger::nn::cuda {

/// Places through which inputs of passes come to the device, beside the pass before: copies of a
/// queue of their own bring over what lies in pinned memory, and a pass waits for them alone.
/// Samples that came elsewhere the host first copies into pinned memory of the place. Activations
/// with scales come as they are and are unpacked there. One thread, which holds the engine.
class InputRing {
 public:
  /// What one pass is given on the device.
  struct Input {
    const std::byte* input = nullptr;
    const std::byte* slots = nullptr;
    const std::byte* labels = nullptr;
  };

  /// `spec`: what a pass takes.
  InputRing(std::shared_ptr<Engine> engine, const TensorSpec& spec);
  /// What is put from now on is for a pass that takes this; places grow where they are too small.
  /// What was put and not taken stays.
  void use(const TensorSpec& spec);

  /// Brings what fills one pass, in parts one behind another. Waits only for the copy that the
  /// place had before. Parts with an owner that lie in the engine's pinned memory are read when the
  /// copy's turn comes, and their owners held until the place is used again; the others are read
  /// now. At most kPlaces inputs that were not taken.
  void put(std::span<const ForwardInput> parts);
  /// The oldest that was put: what is queued from now on has it, but for what is packed.
  Input take();
  /// Queues the unpacking of what was taken.
  void unpack();
  /// Its place is free behind what is queued so far.
  void release();
  size_t waiting() const { return put_ - taken_; }

  static constexpr size_t kPlaces = 2;

 private:
  /// Where a pass's input lies in a place. In bytes, but for samples, the elements of one and its
  /// channels.
  struct Layout {
    ElementType type = ElementType::kFloat32;
    size_t batch = 0, elements = 0, channels = 0;
    size_t sample_bytes = 0, slots_at = 0, labels_at = 0;
    size_t bytes() const { return labels_at + batch * sizeof(int32_t); }
    size_t key_bytes() const { return bytes() - slots_at; }
  };
  /// Samples that the device has as bytes.
  struct Packed {
    size_t first = 0, count = 0;
    bool is_signed = false;
  };
  struct Place {
    // Of what copies read where it lies; they go last, since the memory below waits for copies.
    std::vector<std::shared_ptr<const void>> owners;
    PinnedMemory keys;     // slots and labels
    PinnedMemory samples;  // of parts that are copied; made when there is the first
    PinnedMemory scales;   // {parts, channels}; likewise
    DeviceMemory device;
    DeviceMemory packed;  // scales, then bytes of all samples; likewise
    std::vector<Packed> to_unpack;
    Layout layout;  // of what was put last
    std::unique_ptr<Mark> copied, used;
  };
  void bring(Place& to, const ForwardInput& part, size_t first);
  /// Where `bytes` of a part's input are read from; its samples begin with the pass's `first`.
  const std::byte* pinned(Place& to, const ForwardInput& part, size_t first, size_t bytes) const;
  static Layout layout_of(const TensorSpec& spec);
  void make_room(Place& place) const;
  void make_room_for_scales(Place& place, size_t parts) const;
  static float* scales_of(const std::byte* memory, size_t part, const Layout& layout);
  Place& place(size_t turn) { return places_[turn % kPlaces]; }

  const std::shared_ptr<Engine> engine_;
  Layout layout_;  // of what is put
  std::array<Place, kPlaces> places_;
  size_t put_ = 0, taken_ = 0, released_ = 0;
};

}  // namespace outrigger::nn::cuda
