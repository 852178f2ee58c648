#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "transport/internal/ending.h"
#include "transport/internal/framing.h"
#include "transport/link.h"

namespace outrigger::transport {

/// Where received frames wait for receive, or pass through to a delivery. Room is reserved before a
/// frame's first byte is read, so that a peer that does not keep to its credits is found out.
/// Thread-safe.
class Inbox {
 public:
  explicit Inbox(const LinkOptions& options);

  size_t window(Lane lane) const { return windows_[static_cast<size_t>(lane)]; }

  /// Room for one frame of `size` bytes: there is if it fits, or if it is alone, or if the inbox
  /// has ended (what comes then is dropped).
  [[nodiscard]] bool try_reserve(Lane lane, size_t size);
  /// Likewise, but waits up to `timeout` and throws once ended.
  [[nodiscard]] bool reserve(Lane lane, size_t size, Duration timeout);

  /// A frame for which room was reserved. `not_before`: when it may be handed out (the delay comes
  /// on top). Whether it was delivered, and its room is free again.
  bool push(ReceivedFrame frame, size_t size, TimePoint not_before);

  /// Hands what is pushed to `take`, in the thread that pushes it, until `stop` is requested or the
  /// inbox has ended; throws that, or what `take` threw. False at once where something waits.
  [[nodiscard]] bool deliver(const Link::Take& take, const std::stop_token& stop);

  struct Taken {
    ReceivedFrame frame;
    size_t size = 0;
  };
  /// See Link::receive.
  std::optional<Taken> take(Duration timeout);

  void end(const Ending& ending);
  void add_to(LinkStats& stats) const;

 private:
  struct Delivery {
    const Link::Take& take;
    bool busy = false;
    std::exception_ptr failure = nullptr;
  };
  void hand_over(Delivery& delivery, ReceivedFrame frame, std::unique_lock<std::mutex> lock);
  struct Waiting {
    Taken taken;
    TimePoint ready;
  };
  bool fits(Lane lane, size_t cost) const;
  /// The lane whose head may be handed out at `now`; else none, and `wake` is lowered to when one
  /// may.
  std::optional<size_t> ready_lane(TimePoint now, TimePoint& wake) const;

  const std::array<size_t, kLanes> windows_;
  const Duration delay_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable room_;
  std::array<std::deque<Waiting>, kLanes> frames_;
  std::array<size_t, kLanes> reserved_{};
  Delivery* delivery_ = nullptr;
  std::optional<Ending> ending_;
  uint64_t frames_received_ = 0;
  uint64_t bytes_received_ = 0;
};

}  // namespace outrigger::transport
