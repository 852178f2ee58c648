#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace outrigger::data {

/// A file in a tar.
struct TarMember {
  std::string name;
  /// Of its first byte in the tar.
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Walks over the headers of a tar, old, ustar, GNU (long names) or pax (path, size), without
/// reading what is in the files.
class TarWalker {
 public:
  /// Reads up to the span's size from an offset and says how many bytes there were.
  using ReadAt = std::function<size_t(uint64_t offset, std::span<std::byte> to)>;

  /// `name` and the offset go into the text of errors. `size` is the tar's.
  TarWalker(std::string name, uint64_t size, ReadAt read);

  /// The next regular file; nothing at the end marker (a block of zeros). Throws InvalidInput when
  /// the tar is damaged or ends without the marker.
  std::optional<TarMember> next();

 private:
  struct Header;
  [[noreturn]] void fail(const std::string& what) const;
  void read_exactly(uint64_t offset, std::span<std::byte> to) const;
  Header read_header();
  std::string read_text(const Header& header) const;
  void take_pax(const std::string& records);

  std::string name_;
  uint64_t size_;
  ReadAt read_;
  uint64_t position_ = 0;
  std::optional<std::string> long_name_;
  std::optional<uint64_t> long_size_;
};

}  // namespace outrigger::data
