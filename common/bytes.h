#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/error.h"

namespace outrigger {

using Bytes = std::vector<std::byte>;

/// Writes a message: fixed-width little-endian numbers, strings and blobs with a 32-bit length
/// before them.
class ByteWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void number(T value) { raw(&value, sizeof value); }
  void text(std::string_view value) {
    number(static_cast<uint32_t>(value.size()));
    raw(value.data(), value.size());
  }
  void blob(std::span<const std::byte> value) {
    number(static_cast<uint32_t>(value.size()));
    raw(value.data(), value.size());
  }
  void raw(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  Bytes take() { return std::move(bytes_); }
  size_t size() const { return bytes_.size(); }

 private:
  Bytes bytes_;
};

/// Reads what ByteWriter wrote, from bytes that anybody may have sent: every read is checked
/// against what is left and throws InvalidInput. Views returned point into the message and live as
/// long as it does.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> T number() {
    const auto piece = raw(sizeof(T));
    T value;
    std::memcpy(&value, piece.data(), sizeof value);
    return value;
  }
  std::string text() {
    const auto piece = blob();
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }
  std::span<const std::byte> blob() { return raw(number<uint32_t>()); }
  std::span<const std::byte> raw(size_t size) {
    if (size > rest_.size()) {
      throw InvalidInput("message cut short: " + std::to_string(size) + " bytes wanted, " +
                         std::to_string(rest_.size()) + " left");
    }
    const auto piece = rest_.first(size);
    rest_ = rest_.subspan(size);
    return piece;
  }
  /// A count of things that take at least `least_size` bytes each; refuses what cannot fit in what
  /// is left.
  uint32_t count(size_t least_size) {
    const auto n = number<uint32_t>();
    if (n > rest_.size() / (least_size == 0 ? 1 : least_size)) {
      throw InvalidInput("message claims " + std::to_string(n) + " items in " +
                         std::to_string(rest_.size()) + " bytes");
    }
    return n;
  }
  size_t left() const { return rest_.size(); }
  void expect_end() const {
    if (!rest_.empty())
      throw InvalidInput("message has " + std::to_string(rest_.size()) + " bytes too many");
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace outrigger
