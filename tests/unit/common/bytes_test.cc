#include "common/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace outrigger {
namespace {

enum class Colour : uint8_t { kRed = 3 };

Bytes sample_message() {
  ByteWriter writer;
  writer.number(uint32_t{0x01020304});
  writer.number(-1.5);
  writer.number(Colour::kRed);
  writer.text("caf\xc3\xa9");
  writer.blob(std::vector<std::byte>{std::byte{7}});
  return writer.take();
}

TEST(Bytes, ReadsBackWhatWasWritten) {
  const Bytes message = sample_message();
  ByteReader reader(message);
  EXPECT_EQ(reader.number<uint32_t>(), 0x01020304u);
  EXPECT_EQ(reader.number<double>(), -1.5);
  EXPECT_EQ(reader.number<Colour>(), Colour::kRed);
  EXPECT_EQ(reader.text(), "caf\xc3\xa9");
  ASSERT_EQ(reader.blob().size(), 1u);
  EXPECT_NO_THROW(reader.expect_end());
}

TEST(Bytes, NumbersAreLittleEndianOnTheWire) {
  const Bytes message = sample_message();
  EXPECT_EQ(message[0], std::byte{4});
  EXPECT_EQ(message[3], std::byte{1});
}

TEST(Bytes, EveryMessageCutShortIsRefused) {
  const Bytes message = sample_message();
  for (size_t size = 0; size < message.size(); ++size) {
    ByteReader reader(std::span<const std::byte>(message).first(size));
    EXPECT_THROW(
        {
          reader.number<uint32_t>();
          reader.number<double>();
          reader.number<Colour>();
          reader.text();
          reader.blob();
        },
        InvalidInput)
        << "cut to " << size;
  }
}

TEST(Bytes, ALengthLargerThanTheMessageIsRefused) {
  ByteWriter writer;
  writer.number(uint32_t{0xFFFFFFFF});
  const Bytes message = writer.take();
  EXPECT_THROW(ByteReader(message).text(), InvalidInput);
  EXPECT_THROW(ByteReader(message).blob(), InvalidInput);
}

TEST(Bytes, ACountThatCannotFitIsRefusedBeforeAnythingIsReserved) {
  ByteWriter writer;
  writer.number(uint32_t{3});
  writer.number(uint64_t{0});
  writer.number(uint64_t{0});
  const Bytes message = writer.take();
  EXPECT_THROW(ByteReader(message).count(8), InvalidInput);
  EXPECT_EQ(ByteReader(message).count(4), 3u);
}

TEST(Bytes, WhatIsLeftOverIsRefused) {
  const Bytes message = sample_message();
  ByteReader reader(message);
  reader.number<uint32_t>();
  EXPECT_THROW(reader.expect_end(), InvalidInput);
}

}  // namespace
}  // namespace outrigger
