#include "data/codec/exif.h"

#include <cstdint>
#include <cstring>

namespace outrigger::data::codec {
namespace {

constexpr char kPrefix[] = {'E', 'x', 'i', 'f', '\0', '\0'};
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShortType = 3;
constexpr size_t kEntrySize = 12;

/// The TIFF structure behind the prefix, in either byte order; reads past the end give 0.
class Tiff {
 public:
  explicit Tiff(std::span<const std::byte> bytes) : bytes_(bytes) {
    little_ = bytes.size() >= 2 && bytes[0] == std::byte{'I'} && bytes[1] == std::byte{'I'};
    const bool big = bytes.size() >= 2 && bytes[0] == std::byte{'M'} && bytes[1] == std::byte{'M'};
    valid_ = (little_ || big) && number(2, 2) == 42;
  }

  bool valid() const { return valid_; }

  uint32_t number(size_t offset, size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t at = little_ ? offset + size - 1 - i : offset + i;
      value = value << 8 | std::to_integer<uint32_t>(bytes_[at]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_ = false;
  bool valid_ = false;
};

}  // namespace

int exif_orientation(std::span<const std::byte> app1) {
  if (app1.size() < sizeof kPrefix || std::memcmp(app1.data(), kPrefix, sizeof kPrefix) != 0)
    return 1;
  const Tiff tiff(app1.subspan(sizeof kPrefix));
  if (!tiff.valid()) return 1;
  const size_t directory = tiff.number(4, 4);
  const uint32_t entries = tiff.number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntrySize;
    if (tiff.number(entry, 2) != kOrientationTag) continue;
    if (tiff.number(entry + 2, 2) != kShortType) return 1;
    const uint32_t value = tiff.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace outrigger::data::codec
