#include "transport/internal/framing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "link_pairs.h"
#include "tests/fakes/memory_blocks.h"
#include "transport/address.h"

namespace outrigger::transport {
namespace {

constexpr size_t kLimit = size_t{1} << 20;

PacketHeader start(uint64_t total, uint32_t message, uint32_t payloads, uint32_t length) {
  return {.kind = PacketKind::kStart,
          .type = 3,
          .length = length,
          .message_size = message,
          .payload_count = payloads,
          .total = total};
}

PacketHeader there_and_back(const PacketHeader& header) {
  const HeaderBytes bytes = encode(header);
  return decode_header(bytes, kLimit);
}

/// The frame as the receiver would see it if the writer cut it into pieces of `limit` bytes.
ReceivedFrame cut_and_assemble(Frame frame, size_t limit) {
  FrameCutter cutter(std::move(frame));
  FrameAssembler assembler(BufferPool::create(kLimit));
  do {
    std::vector<std::span<const std::byte>> parts;
    const PacketHeader header = there_and_back(cutter.cut(limit, parts));
    Bytes bytes;
    for (const auto& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    EXPECT_EQ(bytes.size(), header.length);
    std::span<const std::byte> rest(bytes);
    if (header.kind == PacketKind::kStart) {
      const size_t table = header.payload_count * sizeof(uint64_t);
      assembler.begin(header, rest.first(table));
      rest = rest.subspan(table);
    }
    std::vector<std::span<std::byte>> places;
    assembler.place(rest.size(), places);
    for (const auto& place : places) {
      std::copy_n(rest.begin(), place.size(), place.begin());
      rest = rest.subspan(place.size());
    }
  } while (!cutter.finished());
  EXPECT_TRUE(assembler.complete());
  return assembler.take();
}

TEST(FramingTest, AFrameSurvivesEverySizeOfPiece) {
  for (const size_t limit : {1U, 7U, 64U, 100U, 1000U, 100'000U}) {
    const ReceivedFrame frame =
        cut_and_assemble(frame_of(9, pattern(50, 1), {pattern(300, 2), {}, pattern(77, 3)}), limit);
    EXPECT_EQ(frame.type, 9);
    EXPECT_EQ(frame.message, pattern(50, 1));
    ASSERT_EQ(frame.payloads.size(), 3U);
    EXPECT_TRUE(frame.payloads[1].bytes.empty());
    const auto last = frame.payloads[2].bytes;
    EXPECT_EQ(Bytes(last.begin(), last.end()), pattern(77, 3));
  }
}

TEST(FramingTest, AnEmptyFrameIsOnePacket) {
  FrameCutter cutter(frame_of(4));
  std::vector<std::span<const std::byte>> parts;
  EXPECT_FALSE(cutter.finished());
  EXPECT_EQ(cutter.cut(100, parts).total, 0U);
  EXPECT_TRUE(cutter.finished());
  EXPECT_TRUE(parts.empty());
}

TEST(FramingTest, HeadersThatContradictThemselvesAreRefused) {
  EXPECT_NO_THROW(there_and_back(start(100, 100, 0, 100)));
  EXPECT_THROW(there_and_back(start(kLimit + 1, 0, 0, 0)), LinkClosed);
  EXPECT_THROW(there_and_back(start(100, 101, 0, 100)), LinkClosed);
  EXPECT_THROW(there_and_back(start(100, 90, 2, 100)), LinkClosed);
  EXPECT_THROW(there_and_back(start(100, 0, 2, 15)), LinkClosed)
      << "the table must be in the first packet";
  EXPECT_THROW(there_and_back(start(100, 0, 0, 101)), LinkClosed);
  EXPECT_THROW(there_and_back(start(kLimit, 0, 4097, 40000)), LinkClosed);
  PacketHeader control = start(70'000, 70'000, 0, 70'000);
  control.lane = Lane::kControl;
  EXPECT_THROW(there_and_back(control), LinkClosed);
  EXPECT_THROW(there_and_back({.kind = PacketKind::kClose, .length = 100'000}), LinkClosed);
  HeaderBytes bytes = encode(start(1, 1, 0, 1));
  bytes[2] = std::byte{200};
  EXPECT_THROW(decode_header(bytes, kLimit), LinkClosed);
  EXPECT_THROW(decode_header(HeaderBytes{}, kLimit), LinkClosed);
}

TEST(FramingTest, PayloadSizesThatDoNotFitTheirFrameAreRefused) {
  FrameAssembler assembler(BufferPool::create(kLimit));
  for (const uint64_t size : {uint64_t{1}, uint64_t{93}, uint64_t{1} << 63, ~uint64_t{0}}) {
    const auto table = std::as_bytes(std::span(&size, 1));
    EXPECT_THROW(assembler.begin(start(100, 0, 1, 100), table), LinkClosed) << size;
  }
  const std::array<uint64_t, 2> wrapping = {~uint64_t{0}, 85};
  EXPECT_THROW(assembler.begin(start(100, 0, 2, 100), std::as_bytes(std::span(wrapping))),
               LinkClosed);
}

TEST(FramingTest, PiecesOutOfPlaceAreRefused) {
  FrameAssembler assembler(BufferPool::create(kLimit));
  std::vector<std::span<std::byte>> places;
  EXPECT_THROW(assembler.place(1, places), LinkClosed);
  assembler.begin(start(100, 100, 0, 10), {});
  assembler.place(10, places);
  EXPECT_THROW(assembler.begin(start(100, 100, 0, 10), {}), LinkClosed);
  EXPECT_THROW(assembler.place(91, places), LinkClosed);
}

TEST(BufferPoolTest, MemoryIsAlignedAndUsedAgain) {
  const auto pool = BufferPool::create(10'000);
  const std::byte* first = pool->acquire(5000).get();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
  EXPECT_EQ(pool->acquire(4000).get(), first);
  EXPECT_NE(pool->acquire(100).get(), first) << "so small a piece must not hold so much memory";
}

TEST(BufferPoolTest, KeepsWhatWasUsedLatelyWithinItsBound) {
  const auto pool = BufferPool::create(10'000);
  std::array<std::shared_ptr<std::byte>, 3> buffers;
  for (auto& buffer : buffers) buffer = pool->acquire(4000);
  buffers = {};
  EXPECT_EQ(pool->kept_bytes(), 8000U);
  pool->acquire(4000);
  const TimePoint begin = system_now();
  pool->acquire(4000);  // the newest, again and again
  pool->drop_unused_since(begin);
  EXPECT_EQ(pool->kept_bytes(), 4000U);
  pool->drop_unused_since(TimePoint::max());
  EXPECT_EQ(pool->kept_bytes(), 0U);
}

TEST(BufferPoolTest, BuffersOutliveThePool) {
  auto pool = BufferPool::create(10'000);
  const auto buffer = pool->acquire(100);
  pool.reset();
  std::fill_n(buffer.get(), 100, std::byte{1});
  EXPECT_EQ(buffer.get()[99], std::byte{1});
}

TEST(BufferPoolTest, GivesASourcesMemoryWhereThatHasAny) {
  const auto source = fakes::MemoryBlocks::create(1, 5000);
  auto pool = BufferPool::create(10'000, source);
  auto first = pool->acquire(5000);
  EXPECT_TRUE(source->hold(first.get()));
  const auto second = pool->acquire(5000);
  EXPECT_FALSE(source->hold(second.get())) << "it has no more";
  first.reset();
  EXPECT_EQ(source->used(), 0U) << "the pool keeps nothing of it";
  EXPECT_FALSE(source->hold(pool->acquire(6000).get())) << "too large for it";
  first = pool->acquire(4000);
  pool.reset();
  EXPECT_TRUE(source->hold(first.get()));
}

TEST(AddressTest, HostsAndPortsAreTakenApartAndPutTogether) {
  EXPECT_EQ(parse_address("server:29400").host, "server");
  EXPECT_EQ(parse_address("server:29400").port, 29400);
  EXPECT_EQ(parse_address("server", 7).port, 7);
  EXPECT_EQ(parse_address("[::1]:80").host, "::1");
  EXPECT_EQ(parse_address("[::1]", 5).port, 5);
  EXPECT_EQ(to_string(parse_address("[::1]:80")), "[::1]:80");
  EXPECT_EQ(to_string(parse_address("10.0.0.1:80")), "10.0.0.1:80");
}

TEST(AddressTest, WhatListensIsReachedOnTheSameMachine) {
  const auto reached = [](const char* host) { return to_string(reached_here({host, 29400})); };
  for (const char* all : {"", "0.0.0.0", "::"}) EXPECT_EQ(reached(all), "127.0.0.1:29400");
  EXPECT_EQ(reached("10.0.0.7"), "10.0.0.7:29400");
  EXPECT_EQ(reached("fd00::5"), "[fd00::5]:29400");
}

TEST(AddressTest, WhatIsNoAddressIsRefusedWithWhatIsAllowed) {
  for (const char* text : {"", ":80", "host", "host:", "host:0", "host:65536", "host:-1",
                           "host:80x", "::1:80", "[::1", "[::1]80", "host:99999999999"}) {
    try {
      parse_address(text);
      FAIL() << text;
    } catch (const InvalidInput& failure) {
      EXPECT_NE(std::string(failure.what()).find("host:port"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace outrigger::transport
