#include "nn/cuda/input_ring.h"

#include <algorithm>
#include <cstring>

#include "common/error.h"
#include "nn/cuda/arena_plan.h"

namespace outrigger::nn::cuda {
namespace {

constexpr const char* kWhat = "input on its way";

}  // namespace

InputRing::InputRing(std::shared_ptr<Engine> engine, const TensorSpec& spec)
    : engine_(std::move(engine)) {
  for (Place& place : places_) {
    place.copied = engine_->make_mark();
    place.used = engine_->make_mark();
  }
  use(spec);
}

InputRing::Layout InputRing::layout_of(const TensorSpec& spec) {
  Layout layout;
  layout.type = spec.type;
  layout.batch = static_cast<size_t>(spec.shape.front());
  layout.elements = static_cast<size_t>(element_count(spec.shape)) / layout.batch;
  layout.channels = static_cast<size_t>(spec.shape.back());
  layout.sample_bytes = layout.elements * outrigger::element_size(spec.type);
  layout.slots_at = aligned(layout.batch * layout.sample_bytes);
  layout.labels_at = layout.slots_at + aligned(layout.batch * sizeof(uint64_t));
  return layout;
}

void InputRing::use(const TensorSpec& spec) {
  layout_ = layout_of(spec);
  for (size_t turn = put_; turn < released_ + kPlaces; ++turn) make_room(place(turn));
}

// What goes waits for the device.
void InputRing::make_room(Place& place) const {
  if (place.keys.bytes() < layout_.key_bytes())
    place.keys = PinnedMemory(engine_, layout_.key_bytes(), kWhat);
  if (place.device.bytes() >= layout_.bytes()) return;
  place.device = {};  // both may be more than there is
  place.device = DeviceMemory(engine_, layout_.bytes(), kWhat, static_cast<int64_t>(layout_.batch));
}

const std::byte* InputRing::pinned(Place& to, const ForwardInput& part, size_t first,
                                   size_t bytes) const {
  if (part.owner != nullptr && engine_->is_pinned(part.input.data, bytes)) {
    to.owners.push_back(part.owner);
    return part.input.data;
  }
  const size_t all = layout_.batch * layout_.sample_bytes;
  if (to.samples.bytes() < all) to.samples = PinnedMemory(engine_, all, kWhat);
  std::byte* copy = to.samples.data() + first * layout_.sample_bytes;
  std::memcpy(copy, part.input.data, bytes);
  return copy;
}

void InputRing::make_room_for_scales(Place& place, size_t parts) const {
  const size_t bytes = aligned(parts * layout_.channels * sizeof(float));
  if (place.scales.bytes() < bytes) place.scales = PinnedMemory(engine_, bytes, kWhat);
  const size_t all = place.scales.bytes() + layout_.batch * layout_.elements;
  if (place.packed.bytes() >= all) return;
  place.packed = {};
  place.packed = DeviceMemory(engine_, all, kWhat);
}

float* InputRing::scales_of(const std::byte* memory, size_t part, const Layout& layout) {
  return reinterpret_cast<float*>(const_cast<std::byte*>(memory)) + part * layout.channels;
}

void InputRing::bring(Place& to, const ForwardInput& part, size_t first) {
  const auto count = static_cast<size_t>(part.count);
  if (part.scales.empty()) {
    const size_t bytes = count * layout_.sample_bytes;
    engine_->upload_pinned(Queue::kCopies, to.device.data() + first * layout_.sample_bytes,
                           pinned(to, part, first, bytes), bytes);
    return;
  }
  ensure(part.scales.size() == layout_.channels, "packed samples have a scale a channel");
  std::ranges::copy(part.scales, scales_of(to.scales.data(), to.to_unpack.size(), layout_));
  to.to_unpack.push_back({first, count, part.input.type == ElementType::kInt8});
  const size_t bytes = count * layout_.elements;
  engine_->upload_pinned(Queue::kCopies,
                         to.packed.data() + to.scales.bytes() + first * layout_.elements,
                         pinned(to, part, first, bytes), bytes);
}

void InputRing::put(std::span<const ForwardInput> parts) {
  ensure(put_ - taken_ < kPlaces, "an input is put where there is a place");
  Place& to = place(put_++);
  to.copied->wait();  // of what the place had before
  to.owners.clear();
  to.to_unpack.clear();
  to.layout = layout_;
  make_room(to);
  const bool packed = std::ranges::any_of(parts, [](const auto& p) { return !p.scales.empty(); });
  if (packed) make_room_for_scales(to, parts.size());
  to.used->hold(Queue::kCopies);
  std::byte* const keys = to.keys.data();
  size_t sample = 0;
  for (const ForwardInput& part : parts) {
    const auto count = static_cast<size_t>(part.count);
    ensure(sample + count <= layout_.batch && part.slots.size() == count &&
               part.labels.size() == count,
           "parts fill a pass, with a slot and a label for each sample");
    bring(to, part, sample);
    std::memcpy(keys + sample * sizeof(uint64_t), part.slots.data(), part.slots.size_bytes());
    std::memcpy(keys + layout_.labels_at - layout_.slots_at + sample * sizeof(int32_t),
                part.labels.data(), part.labels.size_bytes());
    sample += count;
  }
  ensure(sample == layout_.batch, "parts fill a pass");
  engine_->upload_pinned(Queue::kCopies, to.device.data() + layout_.slots_at, keys,
                         layout_.key_bytes());
  if (packed) {
    engine_->upload_pinned(Queue::kCopies, to.packed.data(), to.scales.data(),
                           to.to_unpack.size() * layout_.channels * sizeof(float));
  }
  to.copied->set(Queue::kCopies);
}

InputRing::Input InputRing::take() {
  ensure(taken_ < put_ && released_ == taken_, "what is taken was put, one after the other");
  const Place& from = place(taken_++);
  from.copied->hold(Queue::kWork);
  const std::byte* data = from.device.data();
  return {data, data + from.layout.slots_at, data + from.layout.labels_at};
}

void InputRing::unpack() {
  ensure(released_ < taken_, "what is unpacked was taken");
  const Place& from = place(taken_ - 1);
  const Layout& layout = from.layout;
  const Stored stored =
      layout.type == ElementType::kBFloat16 ? Stored::kBFloat16 : Stored::kFloat32;
  const std::byte* bytes = from.packed.data() + from.scales.bytes();
  for (size_t i = 0; i < from.to_unpack.size(); ++i) {
    const Packed& part = from.to_unpack[i];
    engine_->kernels().dequantise(
        reinterpret_cast<const uint8_t*>(bytes + part.first * layout.elements), part.is_signed,
        scales_of(from.packed.data(), i, layout),
        Array{stored, from.device.data() + part.first * layout.sample_bytes},
        {static_cast<uint32_t>(part.count * layout.elements / layout.channels),
         static_cast<uint32_t>(layout.channels)});
  }
}

void InputRing::release() {
  ensure(released_ < taken_, "what is released was taken");
  place(released_++).used->set(Queue::kWork);
}

}  // namespace outrigger::nn::cuda
