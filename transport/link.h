#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/memory_source.h"
#include "common/tensor.h"

namespace outrigger::transport {

/// The other side ended the link, died, went silent, or broke the protocol. The text says which.
class LinkClosed : public IoError {
 public:
  using IoError::IoError;
};

/// Read-only bytes and a share in whatever keeps them alive: cheap to copy, so the same weights can
/// wait in the queues of many links. The bytes must not change while anyone holds the payload.
struct Payload {
  std::span<const std::byte> bytes;
  /// Null: borrowed from the caller, and Link::send returns only when the link is done with them.
  std::shared_ptr<const void> owner;

  static Payload of(Bytes bytes);
  static Payload of(Tensor tensor);
  static Payload borrowed(std::span<const std::byte> bytes) { return {bytes, nullptr}; }
};

/// Frames of one lane arrive in the order in which they were sent. Control overtakes data, also in
/// the middle of a large frame; it is for small, urgent things (cancel, a new plan, leave). Each
/// lane has credits of its own.
enum class Lane : uint8_t { kData = 0, kControl = 1 };

/// What travels: a type that the user of the link defines, a small message (ByteWriter's) and any
/// number of payloads, whose boundaries are kept. Control frames hold at most 64 KiB in all.
struct Frame {
  uint16_t type = 0;
  Bytes message = {};
  std::vector<Payload> payloads = {};
  Lane lane = Lane::kData;
};

/// Each payload starts at a multiple of 64 bytes (or is the sender's own memory, where a memory
/// link passed it on) and can be kept beyond the frame and the link.
struct ReceivedFrame {
  uint16_t type = 0;
  Lane lane = Lane::kData;
  Bytes message = {};
  std::vector<Payload> payloads = {};
};

struct LinkOptions {
  /// A frame larger than this is refused: by send with InvalidInput, by the receiver by closing the
  /// link.
  size_t max_frame_bytes = size_t{1} << 30;
  /// Bytes of data the peer may have sent that receive has not yet handed out here. A single frame
  /// may be larger: then it travels alone. What waits here holds at most this plus one frame.
  size_t window_bytes = size_t{64} << 20;
  /// Memory of frames that nobody holds any more is used again, and given back when it was not for
  /// so long; never more than twice the window.
  Duration keep_unused = std::chrono::seconds(10);
  /// Bytes that may wait here to be written, before send blocks. A single larger frame waits alone.
  size_t max_queued_bytes = size_t{64} << 20;
  /// Data is cut into chunks of this size, between which control frames and heartbeats go.
  size_t chunk_bytes = size_t{512} << 10;
  /// A heartbeat goes out this often; it also measures the round trip. The first few come sooner.
  Duration heartbeat_interval = std::chrono::seconds(1);
  /// A peer from which nothing arrives for so long, or that takes nothing for so long, is gone.
  Duration silence_limit = std::chrono::seconds(5);
  /// How long close may take to tell the peer why.
  Duration close_limit = std::chrono::seconds(1);
  /// For experiments: limits what this side sends (bytes/s; 0: no limit), and holds back what it
  /// receives. Statistics tell the rate and the round trip of a link that is so at both ends.
  double bytes_per_second = 0;
  Duration delay{0};
  /// Where payloads of data are received into, as far as it has memory; null: ordinary memory.
  std::shared_ptr<MemorySource> memory = nullptr;
};

struct LinkStats {
  uint64_t frames_sent = 0;
  uint64_t frames_received = 0;
  uint64_t bytes_sent = 0;      ///< of frames; heartbeats and headers do not count
  uint64_t bytes_received = 0;  ///< likewise
  size_t bytes_queued = 0;      ///< accepted by send, not yet written
  size_t bytes_untaken = 0;     ///< received, not yet handed out by receive
  size_t bytes_kept = 0;        ///< free memory for frames to come
  Duration send_blocked{0};     ///< time that send spent waiting for room, over all threads
  double send_rate = 0;         ///< bytes/s at which large frames were written lately, which the
                                ///< kernel's buffer may have taken; 0: not known
  double receive_rate = 0;      ///< bytes/s at which large frames arrived lately; 0: not known, as
                                ///< where they arrive faster than they are looked for
  Duration round_trip{0};       ///< the least of the last heartbeats that came back; 0: none yet

  /// The slower of what is known of both directions; 0: nothing is.
  double rate() const {
    if (send_rate == 0 || receive_rate == 0) return std::max(send_rate, receive_rate);
    return std::min(send_rate, receive_rate);
  }
};

/// A link between two processes, a server and a worker, in both directions.
///
/// Thread-safe: any number of threads may send and receive at once. Nothing hangs for ever: while
/// the peer lives, heartbeats say so; when it is gone, every blocked call throws within the silence
/// limit. After close() on this side every call throws Cancelled; after the peer is gone, receive
/// first hands out the frames that arrived whole, and then, as send does at once, throws LinkClosed
/// with the reason. Destroying a link closes it; no call may be in progress then.
class Link {
 public:
  virtual ~Link() = default;

  /// Queues the frame. Blocks while the queue is full (max_queued_bytes; the receiver's window
  /// bounds what leaves it), and, if a payload is borrowed, until it is written. False: no room
  /// within `timeout`, nothing was queued; the timeout does not cut short the wait for borrowed
  /// bytes.
  [[nodiscard]] virtual bool send_within(Frame frame, Duration timeout) = 0;

  /// Likewise without a limit but the link's own life.
  void send(Frame frame);

  /// Likewise several, in this order; how many of them were queued before there was no room for
  /// one within `timeout`. What is small travels together, which costs less than one after the
  /// other.
  [[nodiscard]] virtual size_t send_together_within(std::vector<Frame> frames, Duration timeout);

  /// Likewise all of them.
  void send_together(std::vector<Frame> frames);

  /// The next frame, control first; nothing if none came within `timeout` (0: polls).
  virtual std::optional<ReceivedFrame> receive(Duration timeout) = 0;

  /// Hands each frame to `take` in turn, until `stop` is requested or the link ends: then throws as
  /// receive does, or what `take` threw. Costs less than receive in a loop, since `take` may be
  /// called in the thread that reads; nothing is read meanwhile, so it must not wait for this link.
  using Take = std::function<void(ReceivedFrame)>;
  virtual void deliver(const Take& take, const std::stop_token& stop);

  /// Waits until all that was queued is written; false after `timeout`. Frames flushed before
  /// close() reach a peer that lives.
  [[nodiscard]] virtual bool flush(Duration timeout) = 0;

  /// Ends the link; the peer is told `reason`. Drops what is queued. May be called at any time,
  /// from any thread, more than once; returns at once.
  virtual void close(std::string_view reason) = 0;

  /// Nothing while the link is open, else why it ended.
  virtual std::optional<std::string> closed_reason() const = 0;

  /// Who is at the other side, for people: "10.0.0.7:41822".
  virtual std::string peer() const = 0;

  virtual LinkStats stats() const = 0;

  /// The rates and the round trip in stats() are of what is sent and received from now on, as soon
  /// as that is enough to tell: the other side has become another machine. Nothing where none are
  /// measured.
  virtual void measure_anew() {}

 protected:
  /// Long enough to be for ever, short enough not to overflow when it is added to now().
  static constexpr Duration kLife = std::chrono::hours(24 * 365);
  [[noreturn]] void no_room_ever() const;
};

}  // namespace outrigger::transport
