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
    place.host = PinnedMemory(engine_, bytes, "input on its way");
    place.device = DeviceMemory(engine_, bytes, "input on its way", batch);
    place.copied = engine_->make_mark();
    place.used = engine_->make_mark();
  }
}

void InputRing::put(std::span<const ForwardInput> parts) {
  ensure(put_ - taken_ < kPlaces, "an input is put where there is a place");
  Place& to = place(put_++);
  to.copied->wait();  // of what the place had before
  size_t sample = 0;
  for (const ForwardInput& part : parts) {
    const auto count = static_cast<size_t>(part.count);
    ensure(sample + count <= batch_ && part.slots.size() == count && part.labels.size() == count,
           "parts fill a pass, with a slot and a label for each sample");
    std::memcpy(to.host.data() + sample * sample_bytes_, part.input.data, count * sample_bytes_);
    std::memcpy(to.host.data() + slots_at_ + sample * sizeof(uint64_t), part.slots.data(),
                part.slots.size_bytes());
    std::memcpy(to.host.data() + labels_at_ + sample * sizeof(int32_t), part.labels.data(),
                part.labels.size_bytes());
    sample += count;
  }
  ensure(sample == batch_, "parts fill a pass");
  to.used->hold(Queue::kCopies);
  engine_->upload_pinned(Queue::kCopies, to.device.data(), to.host.data(), to.device.bytes());
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
