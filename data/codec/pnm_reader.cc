#include <string>

#include "data/codec/format_reader.h"
#include "data/codec/rows.h"

namespace outrigger::data::codec {
namespace {

bool is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class PnmReader final : public FormatReader {
 public:
  explicit PnmReader(const DecodeLimits& limits) : limits_(limits) {}

  Header open(std::span<const std::byte> encoded) override;
  Decoded read(const Request& request, Image& image) override;

 private:
  unsigned next_number(const char* what);
  unsigned next_sample();
  uint8_t next_level();
  void skip_pixels(int64_t pixels);
  void put_pixel(uint8_t* to, int channels);

  DecodeLimits limits_;
  std::span<const std::byte> rest_;
  Header header_;
  unsigned max_value_ = 255;
  bool text_ = false;
  bool grey_ = false;
};

/// A decimal number behind white space and comments; takes the one character behind it.
unsigned PnmReader::next_number(const char* what) {
  size_t i = 0;
  const auto peek = [&] { return i < rest_.size() ? std::to_integer<int>(rest_[i]) : -1; };
  while (is_space(peek()) || peek() == '#') {
    const bool comment = peek() == '#';
    while (comment && peek() != '\n' && peek() != '\r' && peek() != -1) ++i;
    if (peek() != -1) ++i;
  }
  if (peek() == -1) throw BrokenImage(std::string("broken PNM: cut short before ") + what);
  unsigned value = 0;
  const size_t first = i;
  for (; peek() >= '0' && peek() <= '9'; ++i) {
    value = value * 10 + static_cast<unsigned>(peek() - '0');
    if (value > INT32_MAX / 10)
      throw BrokenImage(std::string("broken PNM: huge number for ") + what);
  }
  if (i == first) throw BrokenImage(std::string("broken PNM: no number for ") + what);
  rest_ = rest_.subspan(i < rest_.size() ? i + 1 : i);
  return value;
}

Header PnmReader::open(std::span<const std::byte> encoded) {
  const char kind = static_cast<char>(encoded[1]);
  text_ = kind == '2' || kind == '3';
  grey_ = kind == '2' || kind == '5';
  rest_ = encoded.subspan(2);
  const unsigned width = next_number("its width");
  const unsigned height = next_number("its height");
  max_value_ = next_number("its largest value");
  if (max_value_ == 0 || max_value_ > 65535) {
    throw BrokenImage("broken PNM: its largest value is " + std::to_string(max_value_) +
                      "; 1 to 65535 is allowed");
  }
  check_size(width, height, limits_, "PNM");
  const uint64_t samples = uint64_t{width} * height * (grey_ ? 1 : 3);
  // A number of a text image takes a digit and, but for the last, a space.
  const uint64_t least = text_ ? 2 * samples - 1 : samples * (max_value_ > 255 ? 2 : 1);
  if (rest_.size() < least) throw BrokenImage("broken PNM: cut short");
  header_ = {static_cast<int>(width), static_cast<int>(height), 1};
  return header_;
}

unsigned PnmReader::next_sample() {
  unsigned value = 0;
  if (text_) {
    value = next_number("a pixel");
  } else {
    value = std::to_integer<unsigned>(rest_[0]);
    if (max_value_ > 255) value = value << 8 | std::to_integer<unsigned>(rest_[1]);
    rest_ = rest_.subspan(max_value_ > 255 ? 2 : 1);
  }
  if (value > max_value_) {
    throw BrokenImage("broken PNM: a pixel of " + std::to_string(value) + ", more than " +
                      std::to_string(max_value_));
  }
  return value;
}

uint8_t PnmReader::next_level() {
  const unsigned value = next_sample();
  return static_cast<uint8_t>(max_value_ == 255 ? value
                                                : (value * 255 + max_value_ / 2) / max_value_);
}

void PnmReader::skip_pixels(int64_t pixels) {
  const int64_t samples = pixels * (grey_ ? 1 : 3);
  if (text_) {
    for (int64_t i = 0; i < samples; ++i) next_sample();
  } else {
    rest_ = rest_.subspan(static_cast<size_t>(samples) * (max_value_ > 255 ? 2 : 1));
  }
}

void PnmReader::put_pixel(uint8_t* to, int channels) {
  const uint8_t r = next_level();
  const uint8_t g = grey_ ? r : next_level();
  const uint8_t b = grey_ ? r : next_level();
  if (channels == 1) {
    to[0] = grey_ ? r : luma(r, g, b);
  } else {
    to[0] = r;
    to[1] = g;
    to[2] = b;
    to[3] = 255;
  }
}

Decoded PnmReader::read(const Request& request, Image& image) {
  const Rect& r = request.region;
  image.reshape(r.height, r.width, request.channels);
  skip_pixels(int64_t{r.y} * header_.width);
  for (int y = 0; y < r.height; ++y) {
    skip_pixels(r.x);
    uint8_t* to = image.row(y);
    for (int x = 0; x < r.width; ++x, to += request.channels) put_pixel(to, request.channels);
    if (y + 1 < r.height) skip_pixels(header_.width - r.x - r.width);
  }
  return {r.x, r.y, 0};
}

}  // namespace

std::unique_ptr<FormatReader> make_pnm_reader(const DecodeLimits& limits) {
  return std::make_unique<PnmReader>(limits);
}

}  // namespace outrigger::data::codec
