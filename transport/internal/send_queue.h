#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "transport/internal/ending.h"
#include "transport/internal/framing.h"
#include "transport/internal/packet.h"
#include "transport/internal/rate_meter.h"
#include "transport/link.h"

namespace outrigger::transport {

/// What waits to be sent on one link, and the rules for what goes next: signals, then control, then
/// data; a frame begins only when the peer's window has room for it.
///
/// One thread at a time writes: the link's writer (next), or one that has just sent something small
/// and writes it itself, which spares waking the writer (next_small). Whoever got a packet writes
/// it and reports: written, or left, or, where the link broke, abandon. All other calls are free.
class SendQueue {
 public:
  explicit SendQueue(const LinkOptions& options);

  /// A frame that was queued.
  struct Item {
    Item(Frame frame, bool is_borrowed) : cutter(std::move(frame)), borrowed(is_borrowed) {}
    FrameCutter cutter;
    const bool borrowed;
    bool done = false;
  };

  // For users of the link.
  /// Null: no room in time. It is written once next_small or wake_writer was called.
  std::shared_ptr<const Item> push(Frame frame, Duration timeout);
  void wake_writer() { to_write_.notify_one(); }
  /// Returns when what it borrows is free.
  void wait_for_borrowed(const Item& item);
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

  /// For the writer: waits for something to send and fills `packet`, or leaves it as another left
  /// it. False once ended.
  bool next(Packet& packet);
  /// For all others: fills `packet` where nobody writes and what goes next is small. False: there
  /// is nothing to send, or somebody else does.
  bool next_small(Packet& packet);
  void written(const Packet& packet);
  /// The writer is to write the rest.
  void left();
  /// Nothing more is written to this link: borrowed payloads are free.
  void abandon();

 private:
  enum class Writing : uint8_t { kNobody, kSomebody, kLeft };
  struct LaneState {
    std::deque<std::shared_ptr<Item>> items;  ///< not yet cut to their end
    size_t frames = 0;                        ///< not yet written to their end
    size_t queued = 0;                        ///< bytes of those, with kFrameCost each
    size_t window = 0;                        ///< the peer's; 0 until it says
    size_t outstanding = 0;                   ///< begun and not yet credited
    size_t announce = 0;                      ///< window to tell
    size_t own_window = 0;                    ///< the window told last
    size_t give_back = 0;                     ///< credit to tell, once it is worth it
    bool owes_credit() const { return give_back > kept_back(own_window); }
  };

  bool has_room(const LaneState& lane, size_t cost) const;
  bool is_writing(const Item& item) const;
  bool may_send(const LaneState& lane) const;
  std::optional<size_t> sendable_lane(TimePoint now) const;
  bool has_signals(TimePoint now) const;
  void fill(Packet& packet, std::optional<size_t> lane, TimePoint now);
  void add_signals(Packet& packet, TimePoint now);
  void add_piece(Packet& packet, size_t lane);
  std::optional<size_t> lane_of_one_more(const Packet& packet, TimePoint now) const;

  const LinkOptions options_;
  const size_t chunk_;
  mutable std::mutex mutex_;
  std::condition_variable to_write_;
  std::condition_variable changed_;  ///< room, done, flushed or ended
  std::array<LaneState, kLanes> lanes_;
  Writing writing_ = Writing::kNobody;
  std::vector<std::shared_ptr<Item>> in_packet_;  ///< what is being written
  TimePoint next_ping_;
  uint32_t hurried_;  ///< pings that do not wait for the interval
  TimePoint throttled_until_;
  RateMeter rate_;
  std::optional<uint64_t> pong_;
  std::optional<Ending> ending_;
  LinkStats stats_;
};

}  // namespace outrigger::transport
