#pragma once

#include <cstddef>
#include <span>

#include "data/codec/reader.h"
#include "data/image.h"
#include "data/pixels/orientation.h"
#include "data/pixels/resample.h"
#include "data/pixels/view.h"

namespace outrigger::data::pixels {

/// An image on its way through the steps of a pipeline: an encoded image, or pixels, and a view of
/// it. Pixels are computed when a step must touch them. Keeps all its memory. One per thread.
class Canvas {
 public:
  explicit Canvas(DecodeLimits limits) : limits_(limits), reader_(limits) {}

  /// Starts with an encoded image, which must outlive its use here; 1 or 4 channels. Throws
  /// NoImage.
  void load(std::span<const std::byte> encoded, int channels);

  /// To be resized, cropped and mirrored; nothing is computed yet.
  View& view() { return view_; }
  /// The view's pixels, computed now if need be; the view is then the whole of them. Throws
  /// BrokenImage, also where the view has more pixels than the limits allow.
  Image& pixels();
  /// Pixels of the same number of channels to write a step's result to, and its exchange with
  /// pixels().
  Image& spare() { return spare_; }
  void take_spare();

 private:
  void check_view() const;
  void decode();
  void resample_pixels();

  const DecodeLimits limits_;
  codec::Reader reader_;
  Resampler resampler_;
  Orientation orientation_;
  codec::Header header_;
  View view_{1, 1};
  int channels_ = 4;
  bool encoded_ = false;
  Image raw_;
  Image pixels_;
  Image spare_;
};

}  // namespace outrigger::data::pixels
