#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image.h"
#include "data/pixels/filter.h"

namespace outrigger::data::pixels {

/// Resamples images along both axes, in fixed point: each product of a pixel (times 2^7) and a
/// weight (times 2^15) is rounded to 2^-7 of a grey level, so the sum does not depend on the order
/// or the width of the vectors. Keeps its tables and buffers. One per thread.
class Resampler {
 public:
  /// `source` holds a part of the image that the maps are about, whose first pixel is (left, top)
  /// there, and covers what their filters look at. 1 or 4 channels, as the source.
  struct Input {
    const Image& source;
    int left = 0;
    int top = 0;
  };
  void run(const Input& input, const AxisMap& across, const AxisMap& down, Image& output);

 private:
  AxisFilter across_;
  AxisFilter down_;
  std::vector<int16_t> weights_of_channels_;
  std::vector<int16_t> row_;
};

/// All pixels of an image of 1 or 4 channels, as 1 or 3 channels.
void pack(const Image& image, uint8_t* packed);

/// The names of the instruction sets that the kernels were built for and this machine has, best
/// first.
std::vector<std::string> instruction_sets();

/// Confines the kernels to one of them, or with an empty name gives back the choice. For tests
/// only, not thread-safe.
void use_instruction_set(const std::string& name);

}  // namespace outrigger::data::pixels
