#include "transport/link.h"

#include <utility>

namespace outrigger::transport {
namespace {

/// Long enough to be for ever, short enough not to overflow when it is added to now().
constexpr Duration kLinkLife = std::chrono::hours(24 * 365);

}  // namespace

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
  if (!send_within(std::move(frame), kLinkLife))
    throw IoError("no room to send to " + peer() + " for a year");
}

}  // namespace outrigger::transport
