#include "transport/link.h"

#include <algorithm>
#include <utility>

namespace outrigger::transport {
Payload Payload::of(Bytes bytes) {
  const auto owner = std::make_shared<const Bytes>(std::move(bytes));
  return {std::span<const std::byte>(*owner), owner};
}

Payload Payload::of(Tensor tensor) {
  const auto owner = std::make_shared<const Tensor>(std::move(tensor));
  if (owner->empty()) return {{}, owner};
  return {owner->view().raw(), owner};
}

void Link::send(Frame frame) {
  if (!send_within(std::move(frame), kLife)) no_room_ever();
}

void Link::deliver(const Take& take, const std::stop_token& stop) {
  constexpr Duration kLook = std::chrono::milliseconds(200);
  while (!stop.stop_requested()) {
    if (auto frame = receive(kLook)) take(std::move(*frame));
  }
}

void Link::no_room_ever() const { throw IoError("no room to send to " + peer() + " for a year"); }

size_t Link::send_together_within(std::vector<Frame> frames, Duration timeout) {
  const auto fits = [&](Frame& frame) { return send_within(std::move(frame), timeout); };
  const auto left = std::ranges::find_if_not(frames, fits);
  return static_cast<size_t>(left - frames.begin());
}

void Link::send_together(std::vector<Frame> frames) {
  const size_t count = frames.size();
  if (send_together_within(std::move(frames), kLife) < count) no_room_ever();
}

}  // namespace outrigger::transport
