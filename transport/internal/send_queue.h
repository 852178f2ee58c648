#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "transport/internal/ending.h"
#include "transport/internal/framing.h"
#include "transport/internal/rate_meter.h"
#include "transport/link.h"

namespace outrigger::transport {

/// What goes out next, as the bytes to write in order: the link's own signals first, then at most
/// one piece of a frame.
struct Packet {
  std::vector<HeaderBytes> headers;
  std::vector<std::span<const std::byte>>
      pieces;             ///< point into `headers` and into the frame being sent
  size_t frame_part = 0;  ///< bytes of the frame in it
};

/// What waits to be sent on one link, and the rules for what goes next: signals, then control, then
/// data; a frame begins only when the peer's window has room for it. One thread writes (next,
/// written); all others are free.
class SendQueue {
 public:
  explicit SendQueue(const LinkOptions& options);

  // For users of the link.
  bool push(Frame frame, Duration timeout);
  bool flush(Duration timeout);
  void end(const Ending& ending);
  void add_to(LinkStats& stats) const;
  void measure_anew();

  // What the reader learned. Credits that were never used throw LinkClosed.
  void set_window(Lane lane, size_t bytes);
  void credit(Lane lane, size_t bytes);
  void answer_ping(uint64_t stamp);
  // What we tell the peer.
  void announce_window(Lane lane, size_t bytes);
  void give_back(Lane lane, size_t bytes);

  /// Waits for something to send and fills `packet`; false once ended. Then the packet is to be
  /// written and reported.
  bool next(Packet& packet);
  void written(const Packet& packet, Duration took);
  /// The writer is done for good: borrowed payloads are free.
  void stop_writing();

 private:
  struct Item {
    explicit Item(Frame frame) : cutter(std::move(frame)) {}
    FrameCutter cutter;
    bool done = false;
  };
  struct LaneState {
    std::deque<std::shared_ptr<Item>> items;
    size_t queued = 0;       ///< bytes in items, with kFrameCost each
    size_t window = 0;       ///< the peer's; 0 until it says
    size_t outstanding = 0;  ///< begun and not yet credited
    size_t announce = 0;     ///< window to tell
    size_t own_window = 0;   ///< the window told last
    size_t give_back = 0;    ///< credit to tell, once it is worth it
    bool owes_credit() const { return give_back > kept_back(own_window); }
  };

  bool has_room(const LaneState& lane, size_t cost) const;
  bool may_send(const LaneState& lane) const;
  std::optional<size_t> sendable_lane(TimePoint now) const;
  bool has_signals(TimePoint now) const;
  void add_signals(Packet& packet, TimePoint now);
  void add_piece(Packet& packet, size_t lane);

  const LinkOptions options_;
  const size_t chunk_;
  mutable std::mutex mutex_;
  std::condition_variable to_write_;
  std::condition_variable changed_;  ///< room, done, flushed or ended
  std::array<LaneState, kLanes> lanes_;
  std::shared_ptr<Item> writing_;
  TimePoint next_ping_;
  TimePoint throttled_until_;
  RateMeter rate_;
  std::optional<uint64_t> pong_;
  std::optional<Ending> ending_;
  LinkStats stats_;
};

}  // namespace outrigger::transport
