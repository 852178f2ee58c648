#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace outrigger::data {

/// Pixels in memory, uint8 {height, width, channels}, rows packed. Keeps its memory when it is
/// reshaped to something smaller, so one Image serves a whole run without allocating. Movable, not
/// thread-safe.
class Image {
 public:
  Image() = default;
  Image(int height, int width, int channels) { reshape(height, width, channels); }

  /// Sets the shape; the content is undefined afterwards.
  void reshape(int height, int width, int channels) {
    const size_t wanted =
        static_cast<size_t>(height) * static_cast<size_t>(width) * static_cast<size_t>(channels);
    // Slack behind the last pixel lets vector code load past it.
    if (wanted + kSlack > capacity_) {
      pixels_ = std::make_unique<uint8_t[]>(wanted + kSlack);
      capacity_ = wanted + kSlack;
    }
    height_ = height;
    width_ = width;
    channels_ = channels;
  }

  int height() const { return height_; }
  int width() const { return width_; }
  int channels() const { return channels_; }
  size_t size() const { return static_cast<size_t>(height_) * stride(); }
  size_t stride() const { return static_cast<size_t>(width_) * static_cast<size_t>(channels_); }
  uint8_t* row(int y) { return pixels_.get() + static_cast<size_t>(y) * stride(); }
  const uint8_t* row(int y) const { return pixels_.get() + static_cast<size_t>(y) * stride(); }
  std::span<uint8_t> pixels() { return {pixels_.get(), size()}; }
  std::span<const uint8_t> pixels() const { return {pixels_.get(), size()}; }
  /// Readable bytes behind pixels().
  static constexpr size_t kSlack = 64;

 private:
  std::unique_ptr<uint8_t[]> pixels_;
  size_t capacity_ = 0;
  int height_ = 0;
  int width_ = 0;
  int channels_ = 0;
};

}  // namespace outrigger::data
