#pragma once

#include <cstdint>

#include "data/pixels/filter.h"
#include "data/pixels/geometry.h"

namespace outrigger::data::pixels {

/// What resizes, crops and flips have made of an image that nobody has computed yet: `width` x
/// `height` pixels that show a rectangle of the source. Coordinates are those of the image as it is
/// to be looked at.
class View {
 public:
  /// The whole of a source.
  View(int source_width, int source_height);

  int width() const { return width_; }
  int height() const { return height_; }

  // What makes a view larger throws BrokenImage where a side gets longer than arithmetic on its
  // axis holds: only of images some thousands of times as long as wide.

  /// Shorter side to `length`, the other in proportion (rounded down, at least 1).
  void resize_shorter(int length);
  /// Makes the view the smallest of its shape that covers width x height.
  void cover(int width, int height);
  /// Only `box` of what is shown now. `strictly`: what lies outside must not be looked at any more,
  /// not even by filters.
  void crop(const Box& box, bool strictly);
  void crop_middle(int width, int height);
  /// The same content with other numbers of pixels.
  void set_size(int64_t width, int64_t height);
  void mirror() { mirrored_ = !mirrored_; }

  /// What the view is along each axis.
  AxisMap across() const;
  AxisMap down() const;
  /// Whether it shows the source as it is.
  bool is_plain() const;

 private:
  int source_width_;
  int source_height_;
  int width_;
  int height_;
  bool mirrored_ = false;
  AxisMap across_;
  AxisMap down_;
};

}  // namespace outrigger::data::pixels
