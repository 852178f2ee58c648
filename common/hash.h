#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace outrigger {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(std::span<const std::byte> data);

/// The same of what comes in pieces. Not thread-safe.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  void add(std::span<const std::byte> piece);
  /// Of all pieces; the last call.
  Sha256 finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Sha256 hmac_sha256(std::string_view key, std::span<const std::byte> data);

/// Compares in time that does not depend on where the first difference lies.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

/// Lower-case hexadecimal.
std::string to_hex(std::span<const std::byte> data);

/// `size` bytes from the system's cryptographic generator (tokens, challenges; never for training).
std::string random_bytes(size_t size);

}  // namespace outrigger
