#include "data/pixels/view.h"

#include <algorithm>
#include <string>

#include "data/decode.h"

namespace outrigger::data::pixels {
namespace {

AxisMap whole(int pixels) {
  return {0, static_cast<Fixed>(pixels) << kFixedBits, pixels, 0, pixels, false};
}

/// Twice a map's size times its pixels is computed in 64 bits.
bool fits(const AxisMap& map, int64_t pixels) {
  return pixels <= INT32_MAX && map.size <= INT64_MAX / 2 / pixels;
}

/// The part [from, from + count) of the `of` pixels that the map shows now.
void crop_axis(AxisMap& map, int from, int count, int of, bool strictly) {
  map.begin += map.size * from / of;
  map.size = std::max<Fixed>(1, map.size * count / of);
  if (!strictly) return;
  const int first = static_cast<int>(map.begin >> kFixedBits);
  const int last = static_cast<int>((map.begin + map.size + kFixedOne - 1) >> kFixedBits);
  map.first = std::clamp(first, map.first, map.last - 1);
  map.last = std::clamp(last, map.first + 1, map.last);
}

}  // namespace

View::View(int source_width, int source_height)
    : source_width_(source_width),
      source_height_(source_height),
      width_(source_width),
      height_(source_height),
      across_(whole(source_width)),
      down_(whole(source_height)) {
  set_size(source_width, source_height);
}

void View::resize_shorter(int length) {
  const int64_t shorter = std::min(width_, height_);
  const auto scaled = [&](int side) {
    return std::max<int64_t>(1, int64_t{side} * length / shorter);
  };
  set_size(width_ < height_ ? length : scaled(width_), width_ < height_ ? scaled(height_) : length);
}

void View::cover(int width, int height) {
  // Compare width / width_ with height / height_ in whole numbers.
  const bool by_width = int64_t{width} * height_ >= int64_t{height} * width_;
  const auto scaled = [](int64_t side, int64_t to, int64_t from) {
    return (side * to + from / 2) / from;
  };
  if (by_width) {
    set_size(width, std::max<int64_t>(height, scaled(height_, width, width_)));
  } else {
    set_size(std::max<int64_t>(width, scaled(width_, height, height_)), height);
  }
}

void View::crop(const Box& box, bool strictly) {
  const int from_left = mirrored_ ? width_ - box.x - box.width : box.x;
  crop_axis(across_, from_left, box.width, width_, strictly);
  crop_axis(down_, box.y, box.height, height_, strictly);
  set_size(box.width, box.height);
}

void View::crop_middle(int width, int height) {
  if (width > width_ || height > height_) cover(width, height);
  // Half a pixel goes to the even side, as it does in torchvision.
  const auto half = [](int rest) { return rest / 2 + (rest % 4 == 3 ? 1 : 0); };
  crop({half(width_ - width), half(height_ - height), width, height}, false);
}

void View::set_size(int64_t width, int64_t height) {
  if (!fits(across_, width) || !fits(down_, height)) {
    throw BrokenImage("an image of " + std::to_string(source_width_) + "x" +
                      std::to_string(source_height_) + " pixels would become " +
                      std::to_string(width) + "x" + std::to_string(height) +
                      ", of which a side is too long to be computed");
  }
  width_ = static_cast<int>(width);
  height_ = static_cast<int>(height);
}

AxisMap View::across() const {
  AxisMap map = across_;
  map.outputs = width_;
  map.mirrored = mirrored_;
  return map;
}

AxisMap View::down() const {
  AxisMap map = down_;
  map.outputs = height_;
  return map;
}

bool View::is_plain() const {
  const auto plain = [](const AxisMap& map, int outputs, int source) {
    return map.begin == 0 && map.size == static_cast<Fixed>(source) << kFixedBits &&
           outputs == source;
  };
  return !mirrored_ && plain(across_, width_, source_width_) &&
         plain(down_, height_, source_height_);
}

}  // namespace outrigger::data::pixels
