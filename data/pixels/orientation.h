#pragma once

namespace outrigger::data::pixels {

/// How a stored image becomes the image to look at. In stored coordinates first the axes are
/// mirrored, then exchanged.
struct Orientation {
  bool mirror_x = false;
  bool mirror_y = false;
  bool transpose = false;

  /// From EXIF's number, 1 to 8 (CIPA DC-008, tag 0x0112: where the stored image's first row and
  /// column are seen).
  static Orientation from_exif(int number) {
    return {number == 2 || number == 3 || number == 7 || number == 8,
            number == 3 || number == 4 || number == 6 || number == 7, number >= 5};
  }
};

}  // namespace outrigger::data::pixels
