#include "nn/cuda/input_ring.h"

#include <cstring>

#include "common/error.h"
#include "nn/cuda/arena_plan.h"

namespace outrigger::nn::cuda {

InputRing::InputRing(std::shared_ptr<Engine> engine, int64_t batch, size_t sample_bytes)
    : engine_(std::move(engine)),
      batch_(static_cast<size_t>(batch)),
      sample_bytes_(sample_bytes),
      slots_at_(aligned(batch_ * sample_bytes)),
      labels_at_(slots_at_ + aligned(batch_ * sizeof(uint64_t))) {
  const size_t bytes = labels_at_ + batch_ * sizeof(int32_t);
  for (Place& place : places_) {
    place.keys = PinnedMemory(engine_, bytes - slots_at_, "input on its way");
    place.device = DeviceMemory(engine_, bytes, "input on its way", batch);
    place.copied = engine_->make_mark();
    place.used = engine_->make_mark();
  }
}

const std::byte* InputRing::pinned(Place& to, const ForwardInput& part, size_t first) const {
  const size_t bytes = static_cast<size_t>(part.count) * sample_bytes_;
  if (part.owner != nullptr && engine_->is_pinned(part.input.data, bytes)) {
    to.owners.push_back(part.owner);
    return part.input.data;
  }
  if (to.samples.data() == nullptr)
    to.samples = PinnedMemory(engine_, batch_ * sample_bytes_, "input on its way");
  std::byte* copy = to.samples.data() + first * sample_bytes_;
  std::memcpy(copy, part.input.data, bytes);
  return copy;
}

void InputRing::put(std::span<const ForwardInput> parts) {
  ensure(put_ - taken_ < kPlaces, "an input is put where there is a place");
  Place& to = place(put_++);
  to.copied->wait();  // of what the place had before
  to.owners.clear();
  to.used->hold(Queue::kCopies);
  std::byte* const keys = to.keys.data();
  size_t sample = 0;
  for (const ForwardInput& part : parts) {
    const auto count = static_cast<size_t>(part.count);
    ensure(sample + count <= batch_ && part.slots.size() == count && part.labels.size() == count,
           "parts fill a pass, with a slot and a label for each sample");
    engine_->upload_pinned(Queue::kCopies, to.device.data() + sample * sample_bytes_,
                           pinned(to, part, sample), count * sample_bytes_);
    std::memcpy(keys + sample * sizeof(uint64_t), part.slots.data(), part.slots.size_bytes());
    std::memcpy(keys + labels_at_ - slots_at_ + sample * sizeof(int32_t), part.labels.data(),
                part.labels.size_bytes());
    sample += count;
  }
  ensure(sample == batch_, "parts fill a pass");
  engine_->upload_pinned(Queue::kCopies, to.device.data() + slots_at_, keys, to.keys.bytes());
  to.copied->set(Queue::kCopies);
}

InputRing::Input InputRing::take() {
  ensure(taken_ < put_ && released_ == taken_, "what is taken was put, one after the other");
  Place& from = place(taken_++);
  from.copied->hold(Queue::kWork);
  const std::byte* data = from.device.data();
  return {data, data + slots_at_, data + labels_at_};
}

void InputRing::release() {
  ensure(released_ < taken_, "what is released was taken");
  place(released_++).used->set(Queue::kWork);
}

}  // namespace outrigger::nn::cuda
