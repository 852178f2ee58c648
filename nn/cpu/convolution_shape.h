#pragma once

#include <cstdint>

namespace outrigger::nn::cpu {

/// A convolution over channels-last maps.
struct ConvolutionShape {
  int64_t in_height, in_width, in_channels;
  int64_t out_height, out_width, out_channels;
  int64_t kernel, stride, padding, groups;
  bool bias;
  bool bfloat16;
};

}  // namespace outrigger::nn::cpu
