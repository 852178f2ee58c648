#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/internal/buffer_pool.h"
#include "transport/link.h"

/// How frames become bytes. A frame is the byte string [payload sizes, 8 bytes
/// each][message][payload]…; it is cut into packets, each a header and a piece of that string.
/// Packets of the two lanes and the link's own signals alternate.
namespace outrigger::transport {

enum class PacketKind : uint8_t {
  kStart = 1,     ///< the first piece of a frame; holds all payload sizes
  kContinue = 2,  ///< the next piece
  kWindow = 3,    ///< total: how many bytes the lane's receiver is ready to hold
  kCredit = 4,    ///< total: how many bytes of the lane have been taken
  kPing = 5,      ///< total: the sender's clock, to be sent back
  kPong = 6,
  kClose = 7,  ///< followed by `length` bytes of text: why
};

struct PacketHeader {
  PacketKind kind = PacketKind::kPing;
  Lane lane = Lane::kData;
  uint16_t type = 0;
  uint32_t length = 0;
  uint32_t message_size = 0;
  uint32_t payload_count = 0;
  uint64_t total = 0;
};

constexpr size_t kHeaderBytes = 32;
constexpr size_t kMaxMessageBytes = size_t{16} << 20;
constexpr size_t kMaxPayloads = 4096;
constexpr size_t kMaxControlBytes = size_t{64} << 10;
constexpr size_t kMaxReasonBytes = 512;
constexpr size_t kLanes = 2;
/// Lanes' indexes, the most urgent first.
constexpr std::array<size_t, kLanes> kLanesByUrgency = {static_cast<size_t>(Lane::kControl),
                                                        static_cast<size_t>(Lane::kData)};
/// What a frame counts towards windows beside its bytes, so that empty frames are bounded too.
constexpr size_t kFrameCost = 64;

/// Credits of up to so many bytes are kept back, so that not each frame costs a packet of its own
/// and two threads' waking. Therefore a frame may begin too while no more than this is outstanding:
/// else one that is nearly as large as the window would wait for credits that never come.
constexpr size_t kept_back(size_t window) { return window / 8; }

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes encode(const PacketHeader& header);

/// Checks everything that one header alone can tell; throws LinkClosed with what is wrong.
PacketHeader decode_header(std::span<const std::byte, kHeaderBytes> bytes, size_t max_frame_bytes);

/// What the frame occupies as a byte string.
size_t frame_bytes(const Frame& frame);

/// Throws InvalidInput for a frame that a receiver would refuse.
void check_sendable(const Frame& frame, size_t max_frame_bytes);

/// Cuts one frame into pieces without copying; keeps it alive until then.
class FrameCutter {
 public:
  explicit FrameCutter(Frame frame);
  FrameCutter(const FrameCutter&) = delete;
  FrameCutter& operator=(const FrameCutter&) = delete;

  size_t total() const { return total_; }
  bool started() const { return sent_ > 0 || header_sent_; }
  bool finished() const { return header_sent_ && sent_ == total_; }
  Lane lane() const { return frame_.lane; }

  /// The next piece, at most `limit` bytes (more if the payload sizes need it): returns its header
  /// and appends its parts to `parts`. They stay valid as long as the cutter.
  PacketHeader cut(size_t limit, std::vector<std::span<const std::byte>>& parts);

 private:
  Frame frame_;
  std::vector<uint64_t> sizes_;
  std::vector<std::span<const std::byte>> segments_;
  size_t total_ = 0;
  size_t sent_ = 0;
  size_t segment_ = 0;
  size_t offset_ = 0;
  bool header_sent_ = false;
};

/// Puts the pieces of one lane's frames together, straight into the memory that the receiver gets.
class FrameAssembler {
 public:
  explicit FrameAssembler(std::shared_ptr<BufferPool> pool) : pool_(std::move(pool)) {}

  bool busy() const { return busy_; }
  size_t total() const { return total_; }

  /// `header` is a kStart; `sizes` are its payload_count · 8 first bytes. Throws LinkClosed if they
  /// contradict.
  void begin(const PacketHeader& header, std::span<const std::byte> sizes);

  /// Appends where the next `length` bytes of the frame go. Throws LinkClosed if the frame has not
  /// so many left.
  void place(size_t length, std::vector<std::span<std::byte>>& parts);

  /// All bytes have a place; once they are there, take() hands the frame out.
  bool complete() const { return busy_ && placed_ == total_; }
  ReceivedFrame take();

 private:
  void lay_out(const std::vector<uint64_t>& sizes);

  std::shared_ptr<BufferPool> pool_;
  ReceivedFrame frame_;
  std::vector<std::span<std::byte>> segments_;
  bool busy_ = false;
  size_t total_ = 0;
  size_t placed_ = 0;
  size_t segment_ = 0;
  size_t offset_ = 0;
};

}  // namespace outrigger::transport
