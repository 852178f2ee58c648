#include "nn/safetensors.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "common/error.h"

namespace outrigger::nn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Throws;
using ::testing::ThrowsMessage;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

class Safetensors : public ::testing::Test {
 protected:
  // A file of this header and so many bytes 0, 1, 2, ….
  void write_raw(const std::string& header, size_t data) {
    std::string content(8, '\0');
    const uint64_t size = header.size();
    std::memcpy(content.data(), &size, sizeof size);
    content += header;
    for (size_t i = 0; i < data; ++i) content += static_cast<char>(i);
    write_file_atomically(path_, content);
  }
  void expect_refused(const std::string& header, size_t data, const std::string& part) {
    write_raw(header, data);
    EXPECT_THAT([&] { SafetensorsReader reader(path_); },
                ThrowsMessage<InvalidInput>(AllOf(HasSubstr(path_.string()), HasSubstr(part))))
        << header;
  }

  TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_.path() / "a.safetensors";
};

TEST_F(Safetensors, ReadsBackWhatWasWritten) {
  SafetensorsWriter writer(
      path_, {{"count", ElementType::kInt64, {}}, {"w", ElementType::kFloat32, {2, 2}}},
      {{"format", "pt"}});
  writer.write(bytes_of(std::vector<int64_t>{42}));
  writer.write(bytes_of(std::vector<float>{1, -2, 3, 1e-30f}));
  writer.finish();

  const SafetensorsReader reader(path_);
  ASSERT_EQ(reader.tensors().size(), 2u);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.find("w")->shape, (Shape{2, 2}));
  EXPECT_THAT(reader.read(*reader.find("w")), ElementsAre(1, -2, 3, 1e-30f));
  EXPECT_THAT(reader.read_integers(*reader.find("count")), ElementsAre(42));
  EXPECT_EQ(reader.find("v"), nullptr);
}

TEST_F(Safetensors, TensorDataStartsAtAMultipleOf8) {
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde"}) {
    SafetensorsWriter writer(path_, {{name, ElementType::kUint8, {1}}}, {});
    writer.write(bytes_of(std::vector<uint8_t>{1}));
    writer.finish();
    EXPECT_EQ((std::filesystem::file_size(path_) - 1) % 8, 0u);
  }
}

TEST_F(Safetensors, ConvertsEveryFloatTypeToFloat32) {
  const std::vector<uint16_t> halves{0x3C00, 0xC000, 0x0001, 0x03FF, 0x7C00, 0x7BFF, 0x8000};
  std::string header = R"({"h":{"dtype":"F16","shape":[7],"data_offsets":[0,14]},)"
                       R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[14,16]},)"
                       R"("d":{"dtype":"F64","shape":[1],"data_offsets":[16,24]}})";
  write_raw(header, 24);
  std::string content = read_file(path_);
  std::memcpy(content.data() + 8 + header.size(), halves.data(), 14);
  const uint16_t bfloat = to_bfloat16(-1.5f);
  std::memcpy(content.data() + 8 + header.size() + 14, &bfloat, 2);
  const double number = 0.25;
  std::memcpy(content.data() + 8 + header.size() + 16, &number, 8);
  write_file_atomically(path_, content);

  const SafetensorsReader reader(path_);
  EXPECT_THAT(reader.read(*reader.find("h")),
              ElementsAre(1.0f, -2.0f, 0x1p-24f, 1023 * 0x1p-24f, INFINITY, 65504.0f, -0.0f));
  EXPECT_THAT(reader.read(*reader.find("b")), ElementsAre(-1.5f));
  EXPECT_THAT(reader.read(*reader.find("d")), ElementsAre(0.25f));
}

TEST_F(Safetensors, ALargeTensorIsReadWhole) {
  std::vector<float> values(700'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  SafetensorsWriter writer(path_, {{"w", ElementType::kFloat32, {700'001}}}, {});
  writer.write(bytes_of(values));
  writer.finish();
  const SafetensorsReader reader(path_);
  EXPECT_EQ(reader.read(*reader.find("w")), values);
}

TEST_F(Safetensors, AnIntegerTensorIsNoWeight) {
  write_raw(R"({"w":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4);
  const SafetensorsReader reader(path_);
  EXPECT_THAT([&] { reader.read(*reader.find("w")); },
              ThrowsMessage<InvalidInput>(AllOf(HasSubstr("\"w\""), HasSubstr("I32"))));
}

TEST_F(Safetensors, OffsetsThatDoNotFillTheFileExactlyAreRefused) {
  const std::string w = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":)";
  expect_refused(w + "[0,8]}}", 7, "cut short");
  expect_refused(w + "[0,8]}}", 9, "byte 8 of 9");
  expect_refused(w + "[4,8]}}", 8, "does not fit");
  expect_refused(w + "[8,0]}}", 8, "claims bytes");
  expect_refused(w + "[4,12]}}", 12, "hole");
  expect_refused(w + "[0,8]},\"v\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
                 "overlaps");
}

TEST_F(Safetensors, ShapesThatOverflowAreRefused) {
  const std::string huge = "281474976710656";
  expect_refused(
      R"({"w":{"dtype":"F32","shape":[)" + huge + "," + huge + R"(],"data_offsets":[0,8]}})", 8,
      "does not fit");
  expect_refused(
      R"({"w":{"dtype":"F32","shape":[)" + huge + "," + huge + R"(,0],"data_offsets":[0,0]}})", 0,
      "does not fit");
  expect_refused(R"({"w":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8,
                 "impossible size");
}

TEST_F(Safetensors, MalformedHeadersAreRefused) {
  expect_refused("[]", 0, "no JSON object");
  expect_refused("{\"w\":", 0, "no JSON");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1]}})", 4, "lacks");
  expect_refused(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole number");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "whole number");
  expect_refused(R"({"w":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "F33");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, "__metadata__");
  expect_refused(
      R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      2, "named twice");
}

TEST_F(Safetensors, AFileThatIsNoSafetensorsIsRefused) {
  for (const std::string content :
       {"", "short", "PK\x03\x04 a PyTorch file", "\xff\xff\xff\xff\xff\xff\xff\xff{}"}) {
    write_file_atomically(path_, content);
    EXPECT_THAT([&] { SafetensorsReader reader(path_); },
                ThrowsMessage<InvalidInput>(HasSubstr("no safetensors file")));
  }
  EXPECT_THAT([&] { SafetensorsReader reader(folder_.path()); }, Throws<InvalidInput>());
  EXPECT_THAT([&] { SafetensorsReader reader(folder_.path() / "absent"); }, Throws<IoError>());
}

TEST_F(Safetensors, AFullDiskIsAnIoError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this machine";
  EXPECT_THAT(
      [] {
        SafetensorsWriter("/dev/full", {{"w", ElementType::kFloat32, {1}}}, {});
      },
      ThrowsMessage<IoError>(AllOf(HasSubstr("/dev/full"), HasSubstr("No space left"))));
}

}  // namespace
}  // namespace outrigger::nn
