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

/// Output channels of a group.
inline int64_t group_width(const ConvolutionShape& s) { return s.out_channels / s.groups; }

}  // namespace outrigger::nn::cpu
