#include "data/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "common/error.h"

namespace outrigger::data {
namespace {

// Offsets and lengths in a header (POSIX.1-1988 ustar; GNU tar's manual, "Basic Tar Format").
constexpr uint64_t kBlock = 512;
constexpr size_t kName = 0, kNameSize = 100;
constexpr size_t kSize = 124, kSizeSize = 12;
constexpr size_t kChecksum = 148, kChecksumSize = 8;
constexpr size_t kType = 156;
constexpr size_t kMagic = 257;
constexpr size_t kPrefix = 345, kPrefixSize = 155;

/// What a long name or a set of pax records may take.
constexpr uint64_t kMaxText = uint64_t{1} << 20;

using Block = std::array<std::byte, kBlock>;

std::string text_at(const Block& block, size_t offset, size_t size) {
  const auto* first = reinterpret_cast<const char*>(block.data()) + offset;
  return {first, std::find(first, first + size, '\0')};
}

/// An octal number between spaces and zeros, or GNU's big-endian binary one whose first bit is set.
std::optional<uint64_t> number_at(const Block& block, size_t offset, size_t size) {
  const auto byte = [&](size_t i) { return std::to_integer<uint64_t>(block[offset + i]); };
  uint64_t value = 0;
  if (byte(0) & 0x80) {
    if (byte(0) != 0x80) return std::nullopt;  // negative, or beyond 64 bits
    for (size_t i = 1; i < size; ++i) {
      if (value >> 56) return std::nullopt;
      value = value << 8 | byte(i);
    }
    return value;
  }
  size_t i = 0;
  while (i < size && byte(i) == ' ') ++i;
  for (; i < size && byte(i) >= '0' && byte(i) <= '7'; ++i) value = value << 3 | (byte(i) - '0');
  if (i < size && byte(i) != ' ' && byte(i) != 0) return std::nullopt;
  return value;
}

/// The sum of all bytes, the checksum's own taken for spaces.
uint64_t checksum(const Block& block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum && i < kChecksum + kChecksumSize;
    sum += own ? ' ' : std::to_integer<uint64_t>(block[i]);
  }
  return sum;
}

}  // namespace

struct TarWalker::Header {
  std::string name;
  uint64_t size = 0;
  uint64_t data = 0;  // where it starts
  char type = '0';
  bool end = false;
};

TarWalker::TarWalker(std::string name, uint64_t size, ReadAt read)
    : name_(std::move(name)), size_(size), read_(std::move(read)) {}

void TarWalker::fail(const std::string& what) const {
  throw InvalidInput(name_ + ": broken tar at offset " + std::to_string(position_) + ": " + what);
}

void TarWalker::read_exactly(uint64_t offset, std::span<std::byte> to) const {
  if (offset > size_ || to.size() > size_ - offset || read_(offset, to) != to.size()) {
    fail("cut short (it has " + std::to_string(size_) + " bytes)");
  }
}

TarWalker::Header TarWalker::read_header() {
  Block block;
  read_exactly(position_, block);
  Header header;
  header.end =
      std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
  if (header.end) return header;
  if (block[0] == std::byte{0x1F} && block[1] == std::byte{0x8B})
    fail("it is compressed; unpack it first");
  const auto wanted = number_at(block, kChecksum, kChecksumSize);
  if (!wanted || *wanted != checksum(block)) fail("no tar header (its checksum does not match)");
  const auto size = number_at(block, kSize, kSizeSize);
  if (!size) fail("the size of a member is no number");
  header.name = text_at(block, kName, kNameSize);
  header.type = static_cast<char>(block[kType]);
  // A prefix is POSIX's only: GNU keeps other things there.
  if (text_at(block, kMagic, 6) == "ustar" && std::to_integer<int>(block[kPrefix]) != 0) {
    header.name = text_at(block, kPrefix, kPrefixSize) + "/" + header.name;
  }
  const bool describes_next =
      header.type == 'L' || header.type == 'K' || header.type == 'x' || header.type == 'g';
  header.size = !describes_next && long_size_ ? *long_size_ : *size;
  header.data = position_ + kBlock;
  if (header.size > size_ || header.data > size_ - header.size) {
    fail("cut short: " + header.name + " has " + std::to_string(header.size) +
         " bytes, the tar ends at " + std::to_string(size_));
  }
  return header;
}

std::string TarWalker::read_text(const Header& header) const {
  if (header.size > kMaxText) fail("a description of " + std::to_string(header.size) + " bytes");
  std::string text(header.size, '\0');
  read_exactly(header.data, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

/// Records are "length key=value\n", the length counting all of it.
void TarWalker::take_pax(const std::string& records) {
  for (std::string_view rest = records; !rest.empty();) {
    size_t length = 0;
    const char* const end = rest.data() + rest.size();
    const auto parsed = std::from_chars(rest.data(), end, length);
    const auto digits = static_cast<size_t>(parsed.ptr - rest.data());
    if (parsed.ec != std::errc() || length > rest.size() || length < digits + 3 ||
        rest[digits] != ' ') {
      fail("a pax record is not well formed");
    }
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    rest = rest.substr(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = record.substr(equals + 1);
    if (record.substr(0, equals) == "path") long_name_ = std::string(value);
    if (record.substr(0, equals) != "size") continue;
    uint64_t size = 0;
    const auto number = std::from_chars(value.data(), value.data() + value.size(), size);
    if (number.ec != std::errc()) fail("the size of a member is no number");
    long_size_ = size;
  }
}

std::optional<TarMember> TarWalker::next() {
  while (true) {
    const Header header = read_header();
    if (header.end) return std::nullopt;
    if (header.type == 'L') {
      std::string text = read_text(header);
      text.resize(std::min(text.size(), text.find('\0')));
      long_name_ = std::move(text);
    } else if (header.type == 'x') {
      take_pax(read_text(header));
    }
    position_ = header.data + (header.size + kBlock - 1) / kBlock * kBlock;
    if (header.type == 'L' || header.type == 'K' || header.type == 'x' || header.type == 'g')
      continue;
    TarMember member{long_name_.value_or(header.name), header.data, header.size};
    long_name_.reset();
    long_size_.reset();
    if (header.type == '0' || header.type == '\0' || header.type == '7') return member;
  }
}

}  // namespace outrigger::data
