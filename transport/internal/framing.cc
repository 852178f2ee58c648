#include "transport/internal/framing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace outrigger::transport {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian, and written as it lies");

constexpr uint16_t kPacketMagic = 0x524F;  // "OR"
constexpr size_t kPacketAlignment = 64;

[[noreturn]] void broken(const std::string& what) {
  throw LinkClosed("the peer broke the protocol: " + what);
}

size_t align(size_t size) {
  return (size + kPacketAlignment - 1) / kPacketAlignment * kPacketAlignment;
}

void check_start(const PacketHeader& h, size_t max_frame_bytes) {
  const size_t table = size_t{h.payload_count} * sizeof(uint64_t);
  if (h.total > max_frame_bytes) {
    broken("a frame of " + std::to_string(h.total) + " bytes, at most " +
           std::to_string(max_frame_bytes) + " are allowed here");
  }
  if (h.lane == Lane::kControl && h.total > kMaxControlBytes) {
    broken("a control frame of " + std::to_string(h.total) + " bytes");
  }
  if (h.message_size > kMaxMessageBytes)
    broken("a message of " + std::to_string(h.message_size) + " bytes");
  if (h.payload_count > kMaxPayloads)
    broken(std::to_string(h.payload_count) + " payloads in one frame");
  if (table + h.message_size > h.total || h.length < table || h.length > h.total) {
    broken("the sizes in a frame's header contradict each other");
  }
}

}  // namespace

HeaderBytes encode(const PacketHeader& header) {
  HeaderBytes bytes{};
  std::byte* at = bytes.data();
  const auto put = [&at](const auto& value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  };
  put(kPacketMagic);
  put(header.kind);
  put(header.lane);
  put(header.type);
  put(uint16_t{0});
  put(header.length);
  put(header.message_size);
  put(header.payload_count);
  put(header.total);
  return bytes;
}

PacketHeader decode_header(std::span<const std::byte, kHeaderBytes> bytes, size_t max_frame_bytes) {
  ByteReader reader(bytes);
  if (reader.number<uint16_t>() != kPacketMagic)
    broken("garbage where a packet's header should be");
  const auto kind = reader.number<uint8_t>();
  const auto lane = reader.number<uint8_t>();
  if (kind < 1 || kind > static_cast<uint8_t>(PacketKind::kClose))
    broken("packet kind " + std::to_string(kind));
  if (lane >= kLanes) broken("lane " + std::to_string(lane));
  PacketHeader h{.kind = static_cast<PacketKind>(kind), .lane = static_cast<Lane>(lane)};
  h.type = reader.number<uint16_t>();
  reader.number<uint16_t>();
  h.length = reader.number<uint32_t>();
  h.message_size = reader.number<uint32_t>();
  h.payload_count = reader.number<uint32_t>();
  h.total = reader.number<uint64_t>();
  if (h.kind == PacketKind::kStart) check_start(h, max_frame_bytes);
  if (h.kind == PacketKind::kClose && h.length > kMaxReasonBytes)
    broken("a reason too long to be one");
  return h;
}

size_t frame_bytes(const Frame& frame) {
  size_t total = frame.message.size() + frame.payloads.size() * sizeof(uint64_t);
  for (const Payload& payload : frame.payloads) total += payload.bytes.size();
  return total;
}

void check_sendable(const Frame& frame, size_t max_frame_bytes) {
  const size_t total = frame_bytes(frame);
  const size_t limit =
      frame.lane == Lane::kControl ? std::min(kMaxControlBytes, max_frame_bytes) : max_frame_bytes;
  const std::string name = "frame of type " + std::to_string(frame.type);
  if (total > limit) {
    throw InvalidInput(name + " has " + std::to_string(total) + " bytes, at most " +
                       std::to_string(limit) + " are allowed");
  }
  if (frame.message.size() > kMaxMessageBytes) {
    throw InvalidInput(name + " has a message of " + std::to_string(frame.message.size()) +
                       " bytes, at most " + std::to_string(kMaxMessageBytes) +
                       " are allowed; what is large belongs into a payload");
  }
  if (frame.payloads.size() > kMaxPayloads) {
    throw InvalidInput(name + " has " + std::to_string(frame.payloads.size()) +
                       " payloads, at most " + std::to_string(kMaxPayloads) + " are allowed");
  }
}

FrameCutter::FrameCutter(Frame frame) : frame_(std::move(frame)), total_(frame_bytes(frame_)) {
  for (const Payload& payload : frame_.payloads) sizes_.push_back(payload.bytes.size());
  segments_.push_back(std::as_bytes(std::span(sizes_)));
  segments_.emplace_back(frame_.message);
  for (const Payload& payload : frame_.payloads) segments_.push_back(payload.bytes);
}

PacketHeader FrameCutter::cut(size_t limit, std::vector<std::span<const std::byte>>& parts) {
  PacketHeader header{.kind = PacketKind::kContinue, .lane = frame_.lane, .type = frame_.type};
  if (!header_sent_) {
    header.kind = PacketKind::kStart;
    header.message_size = static_cast<uint32_t>(frame_.message.size());
    header.payload_count = static_cast<uint32_t>(sizes_.size());
    header.total = total_;
    limit = std::max(limit, segments_.front().size());
    header_sent_ = true;
  }
  size_t left = std::min(limit, total_ - sent_);
  header.length = static_cast<uint32_t>(left);
  sent_ += left;
  while (left > 0) {
    const auto rest = segments_[segment_].subspan(offset_);
    const auto part = rest.first(std::min(rest.size(), left));
    if (!part.empty()) parts.push_back(part);
    left -= part.size();
    offset_ += part.size();
    if (offset_ == segments_[segment_].size()) {
      ++segment_;
      offset_ = 0;
    }
  }
  return header;
}

void FrameAssembler::begin(const PacketHeader& header, std::span<const std::byte> sizes) {
  if (busy_) broken("a frame begins before the former one of its lane has ended");
  std::vector<uint64_t> payload_sizes(header.payload_count);
  if (!sizes.empty()) std::memcpy(payload_sizes.data(), sizes.data(), sizes.size());
  uint64_t left = header.total - header.message_size - sizes.size();
  for (const uint64_t size : payload_sizes) {
    if (size > left) broken("payloads larger than their frame");
    left -= size;
  }
  if (left != 0) broken("payloads smaller than their frame");

  frame_ = ReceivedFrame{.type = header.type, .lane = header.lane, .message = {}, .payloads = {}};
  frame_.message.resize(header.message_size);
  segments_.clear();
  segments_.emplace_back(frame_.message);
  lay_out(payload_sizes);
  total_ = header.total;
  placed_ = sizes.size();
  segment_ = 0;
  offset_ = 0;
  busy_ = true;
}

void FrameAssembler::lay_out(const std::vector<uint64_t>& sizes) {
  if (sizes.empty()) return;
  size_t room = 0;
  for (const uint64_t size : sizes) room += align(size);
  const std::shared_ptr<std::byte> memory = pool_->acquire(room);
  size_t at = 0;
  for (const uint64_t size : sizes) {
    const std::span<std::byte> bytes(memory.get() + at, size);
    segments_.push_back(bytes);
    frame_.payloads.push_back({bytes, memory});
    at += align(size);
  }
}

void FrameAssembler::place(size_t length, std::vector<std::span<std::byte>>& parts) {
  if (!busy_) broken("a piece of no frame");
  if (length > total_ - placed_) broken("a frame longer than it said");
  placed_ += length;
  while (length > 0) {
    const auto rest = segments_[segment_].subspan(offset_);
    const auto part = rest.first(std::min(rest.size(), length));
    if (!part.empty()) parts.push_back(part);
    length -= part.size();
    offset_ += part.size();
    if (offset_ == segments_[segment_].size()) {
      ++segment_;
      offset_ = 0;
    }
  }
}

ReceivedFrame FrameAssembler::take() {
  busy_ = false;
  segments_.clear();
  return std::move(frame_);
}

}  // namespace outrigger::transport
