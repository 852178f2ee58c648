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
    : engine_(std::move(engine)),
      type_(spec.type),
      batch_(static_cast<size_t>(spec.shape.front())),
      elements_(static_cast<size_t>(element_count(spec.shape)) / batch_),
      channels_(static_cast<size_t>(spec.shape.back())),
      sample_bytes_(elements_ * outrigger::element_size(type_)),
      slots_at_(aligned(batch_ * sample_bytes_)),
      labels_at_(slots_at_ + aligned(batch_ * sizeof(uint64_t))) {
  const size_t bytes = labels_at_ + batch_ * sizeof(int32_t);
  for (Place& place : places_) {
    place.keys = PinnedMemory(engine_, bytes - slots_at_, kWhat);
    place.device = DeviceMemory(engine_, bytes, kWhat, spec.shape.front());
    place.copied = engine_->make_mark();
    place.used = engine_->make_mark();
  }
}

const std::byte* InputRing::pinned(Place& to, const ForwardInput& part, size_t first,
                                   size_t bytes) const {
  if (part.owner != nullptr && engine_->is_pinned(part.input.data, bytes)) {
    to.owners.push_back(part.owner);
    return part.input.data;
  }
  if (to.samples.data() == nullptr)
    to.samples = PinnedMemory(engine_, batch_ * sample_bytes_, kWhat);
  std::byte* copy = to.samples.data() + first * sample_bytes_;
  std::memcpy(copy, part.input.data, bytes);
  return copy;
}

void InputRing::make_room_for_scales(Place& place, size_t parts) const {
  const size_t bytes = aligned(parts * channels_ * sizeof(float));
  if (place.scales.bytes() >= bytes) return;
  place.scales = PinnedMemory(engine_, bytes, kWhat);
  place.packed = DeviceMemory(engine_, bytes + batch_ * elements_, kWhat);
}

float* InputRing::scales_of(const std::byte* memory, size_t part) const {
  return reinterpret_cast<float*>(const_cast<std::byte*>(memory)) + part * channels_;
}

void InputRing::bring(Place& to, const ForwardInput& part, size_t first) {
  const auto count = static_cast<size_t>(part.count);
  if (part.scales.empty()) {
    const size_t bytes = count * sample_bytes_;
    engine_->upload_pinned(Queue::kCopies, to.device.data() + first * sample_bytes_,
                           pinned(to, part, first, bytes), bytes);
    return;
  }
  ensure(part.scales.size() == channels_, "packed samples have a scale a channel");
  std::ranges::copy(part.scales, scales_of(to.scales.data(), to.to_unpack.size()));
  to.to_unpack.push_back({first, count, part.input.type == ElementType::kInt8});
  const size_t bytes = count * elements_;
  engine_->upload_pinned(Queue::kCopies, to.packed.data() + to.scales.bytes() + first * elements_,
                         pinned(to, part, first, bytes), bytes);
}

void InputRing::put(std::span<const ForwardInput> parts) {
  ensure(put_ - taken_ < kPlaces, "an input is put where there is a place");
  Place& to = place(put_++);
  to.copied->wait();  // of what the place had before
  to.owners.clear();
  to.to_unpack.clear();
  const bool packed = std::ranges::any_of(parts, [](const auto& p) { return !p.scales.empty(); });
  if (packed) make_room_for_scales(to, parts.size());
  to.used->hold(Queue::kCopies);
  std::byte* const keys = to.keys.data();
  size_t sample = 0;
  for (const ForwardInput& part : parts) {
    const auto count = static_cast<size_t>(part.count);
    ensure(sample + count <= batch_ && part.slots.size() == count && part.labels.size() == count,
           "parts fill a pass, with a slot and a label for each sample");
    bring(to, part, sample);
    std::memcpy(keys + sample * sizeof(uint64_t), part.slots.data(), part.slots.size_bytes());
    std::memcpy(keys + labels_at_ - slots_at_ + sample * sizeof(int32_t), part.labels.data(),
                part.labels.size_bytes());
    sample += count;
  }
  ensure(sample == batch_, "parts fill a pass");
  engine_->upload_pinned(Queue::kCopies, to.device.data() + slots_at_, keys, to.keys.bytes());
  if (packed) {
    engine_->upload_pinned(Queue::kCopies, to.packed.data(), to.scales.data(),
                           to.to_unpack.size() * channels_ * sizeof(float));
  }
  to.copied->set(Queue::kCopies);
}

InputRing::Input InputRing::take() {
  ensure(taken_ < put_ && released_ == taken_, "what is taken was put, one after the other");
  const Place& from = place(taken_++);
  from.copied->hold(Queue::kWork);
  const std::byte* data = from.device.data();
  return {data, data + slots_at_, data + labels_at_};
}

void InputRing::unpack() {
  ensure(released_ < taken_, "what is unpacked was taken");
  const Place& from = place(taken_ - 1);
  const Stored stored = type_ == ElementType::kBFloat16 ? Stored::kBFloat16 : Stored::kFloat32;
  const std::byte* bytes = from.packed.data() + from.scales.bytes();
  for (size_t i = 0; i < from.to_unpack.size(); ++i) {
    const Packed& part = from.to_unpack[i];
    engine_->kernels().dequantise(reinterpret_cast<const uint8_t*>(bytes + part.first * elements_),
                                  part.is_signed, scales_of(from.packed.data(), i),
                                  Array{stored, from.device.data() + part.first * sample_bytes_},
                                  {static_cast<uint32_t>(part.count * elements_ / channels_),
                                   static_cast<uint32_t>(channels_)});
  }
}

void InputRing::release() {
  ensure(released_ < taken_, "what is released was taken");
  place(released_++).used->set(Queue::kWork);
}

}  // namespace outrigger::nn::cuda
