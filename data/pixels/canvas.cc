#include "data/pixels/canvas.h"

#include <algorithm>
#include <string>
#include <utility>

namespace outrigger::data::pixels {
namespace {

constexpr int kMaxShrinkLog2 = 3;

/// The map along an axis of the stored image, from the map along the axis that shows it.
AxisMap to_stored(AxisMap map, int pixels, bool mirrored) {
  if (!mirrored) return map;
  map.begin = (static_cast<Fixed>(pixels) << kFixedBits) - map.begin - map.size;
  const int first = pixels - map.last;
  map.last = pixels - map.first;
  map.first = first;
  map.mirrored = !map.mirrored;
  return map;
}

/// The same map over an image shrunk by 2^k.
AxisMap shrunk(AxisMap map, int k) {
  map.begin >>= k;
  map.size = std::max<Fixed>(1, map.size >> k);
  map.first >>= k;
  map.last = (map.last + (1 << k) - 1) >> k;
  return map;
}

/// How often both axes can be halved and still have no fewer pixels than outputs.
int shrink_log2(const AxisMap& x, const AxisMap& y) {
  int k = 0;
  const auto enough = [](const AxisMap& map, int by) {
    return map.size >> by >= static_cast<Fixed>(map.outputs) << kFixedBits;
  };
  while (k < kMaxShrinkLog2 && enough(x, k + 1) && enough(y, k + 1)) ++k;
  return k;
}

}  // namespace

void Canvas::load(std::span<const std::byte> encoded, int channels) {
  header_ = reader_.open(encoded);
  orientation_ = Orientation::from_exif(header_.orientation);
  channels_ = channels;
  encoded_ = true;
  view_ = orientation_.transpose ? View(header_.height, header_.width)
                                 : View(header_.width, header_.height);
}

void Canvas::decode() {
  AxisMap x = orientation_.transpose ? view_.down() : view_.across();
  AxisMap y = orientation_.transpose ? view_.across() : view_.down();
  x = to_stored(x, header_.width, orientation_.mirror_x);
  y = to_stored(y, header_.height, orientation_.mirror_y);

  codec::Request request;
  request.channels = channels_;
  request.max_shrink_log2 = shrink_log2(x, y);
  const int k = request.max_shrink_log2;
  // One shrunk pixel more on either side: a format that does not shrink may have its filter reach a
  // little further.
  const auto region = [k](const AxisMap& map, int pixels, int& first, int& count) {
    const InputRange range = input_range(shrunk(map, k));
    first = std::max(0, range.first - 1) << k;
    count = static_cast<int>(std::min<int64_t>(pixels, int64_t{range.last + 1} << k)) - first;
  };
  region(x, header_.width, request.region.x, request.region.width);
  region(y, header_.height, request.region.y, request.region.height);

  const codec::Decoded decoded = reader_.read(request, raw_);
  x = shrunk(x, decoded.shrink_log2);
  y = shrunk(y, decoded.shrink_log2);
  Image& result = orientation_.transpose ? spare_ : pixels_;
  resampler_.run({raw_, decoded.x, decoded.y}, x, y, result);
  if (orientation_.transpose) transpose(spare_, pixels_);
}

void Canvas::resample_pixels() {
  resampler_.run({pixels_, 0, 0}, view_.across(), view_.down(), spare_);
  std::swap(pixels_, spare_);
}

// A thin image is small as it is stored, and huge once its shorter side has the length asked for.
void Canvas::check_view() const {
  const auto width = static_cast<uint64_t>(view_.width());
  const auto height = static_cast<uint64_t>(view_.height());
  if (width * height <= limits_.max_pixels) return;
  throw BrokenImage("an image of " + std::to_string(header_.width) + "x" +
                    std::to_string(header_.height) + " pixels would become " +
                    std::to_string(width) + "x" + std::to_string(height) + "; at most " +
                    std::to_string(limits_.max_pixels) + " pixels are computed");
}

Image& Canvas::pixels() {
  check_view();
  if (encoded_) {
    decode();
  } else if (!view_.is_plain()) {
    resample_pixels();
  }
  encoded_ = false;
  view_ = View(pixels_.width(), pixels_.height());
  return pixels_;
}

void Canvas::take_spare() {
  std::swap(pixels_, spare_);
  view_ = View(pixels_.width(), pixels_.height());
}

}  // namespace outrigger::data::pixels
