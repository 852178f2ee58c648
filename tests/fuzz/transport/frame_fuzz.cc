// Any bytes as what a peer may send: the handshake's messages, packets, and descriptions of
// tensors. The first byte chooses. Either an exception of ours, or a result that keeps its
// promises.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/error.h"
#include "transport/codec.h"
#include "transport/handshake.h"
#include "transport/internal/framing.h"

namespace outrigger::transport {
namespace {

using Input = std::span<const std::byte>;

constexpr size_t kMaxFrame = size_t{1} << 20;

Input take(Input& rest, size_t size) {
  const Input piece = rest.first(std::min(size, rest.size()));
  rest = rest.subspan(piece.size());
  return piece;
}

/// Version 1 in a hello stands for ours, so that the corpus outlives it.
Bytes with_our_version(Input input) {
  constexpr size_t kAt = 8;  // behind the magic
  constexpr std::array kFirst = {std::byte{1}, std::byte{0}};
  Bytes bytes(input.begin(), input.end());
  if (bytes.size() < kAt + kFirst.size()) return bytes;
  const auto version = std::span(bytes).subspan<kAt, kFirst.size()>();
  if (std::ranges::equal(version, kFirst)) version[0] = std::byte{kProtocolVersion};
  return bytes;
}

void server_handshake(Input input) {
  const Bytes ours = with_our_version(input);
  Input rest = ours;
  ServerHandshake handshake("token");
  while (handshake.wanted() > 0 && rest.size() >= handshake.wanted()) {
    const auto step = handshake.advance(take(rest, handshake.wanted()));
    ensure(!step.done, "nobody guesses a proof");
  }
}

void client_handshake(Input input) {
  const Bytes ours = with_our_version(input);
  Input rest = ours;
  if (rest.size() < kHelloBytes + kVerdictBytes) return;
  ClientHandshake handshake("token", Purpose::kSocketLink);
  handshake.on_hello(take(rest, kHelloBytes).first<kHelloBytes>());
  handshake.on_verdict(rest.first<kVerdictBytes>());
  impossible("nobody guesses a proof");
}

/// What StreamLink's reader does with one packet; false when the bytes end within it.
bool read_packet(Input& rest, std::array<FrameAssembler, kLanes>& assemblers) {
  if (rest.size() < kHeaderBytes) return false;
  const PacketHeader header =
      decode_header(take(rest, kHeaderBytes).first<kHeaderBytes>(), kMaxFrame);
  if (header.kind != PacketKind::kStart && header.kind != PacketKind::kContinue) return true;
  FrameAssembler& assembler = assemblers[static_cast<size_t>(header.lane)];
  size_t length = header.length;
  if (header.kind == PacketKind::kStart) {
    const size_t table = header.payload_count * sizeof(uint64_t);
    if (rest.size() < table) return false;
    assembler.begin(header, take(rest, table));
    length -= table;
  }
  std::vector<std::span<std::byte>> places;
  assembler.place(length, places);
  for (const auto& place : places) {
    const Input piece = take(rest, place.size());
    std::copy(piece.begin(), piece.end(), place.begin());
    if (piece.size() < place.size()) return false;
  }
  if (!assembler.complete()) return true;
  const size_t total = assembler.total();
  const ReceivedFrame frame = assembler.take();
  size_t size = frame.message.size() + frame.payloads.size() * sizeof(uint64_t);
  for (const Payload& payload : frame.payloads) size += payload.bytes.size();
  ensure(size == total, "a frame has the size that it said");
  return true;
}

void packets(Input rest) {
  const auto pool = BufferPool::create(2 * kMaxFrame);
  std::array<FrameAssembler, kLanes> assemblers = {FrameAssembler(pool), FrameAssembler(pool)};
  while (read_packet(rest, assemblers)) {
  }
}

void tensor(Input rest) {
  ByteReader reader(rest);
  const uint32_t data = reader.number<uint32_t>();
  const auto bytes = reader.raw(std::min<size_t>(data, reader.left()));
  const EncodedTensor encoded =
      read_encoded(reader, Payload::of(Bytes(bytes.begin(), bytes.end())));
  decode(encoded,
         encoded.format == WireFormat::kUint8 ? ElementType::kUint8 : ElementType::kBFloat16);
}

}  // namespace
}  // namespace outrigger::transport

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace outrigger::transport;
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(bytes, size)).subspan(1);
  try {
    switch (bytes[0] % 4) {
      case 0:
        server_handshake(rest);
        break;
      case 1:
        client_handshake(rest);
        break;
      case 2:
        packets(rest);
        break;
      default:
        tensor(rest);
    }
  } catch (const outrigger::Error&) {
  }
  return 0;
}
