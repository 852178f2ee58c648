#pragma once

#include <cstdint>

namespace outrigger {

/// How a tensor travels between processes. The numbers are part of the protocol.
enum class WireFormat : uint8_t {
  kUint8 = 0,     ///< pixels, as they are
  kFloat32 = 1,   ///< lossless
  kBFloat16 = 2,  ///< rounded to nearest, ties to even; lossless for bfloat16 tensors
  /// 8 bits and a float32 scale for each channel (the last dimension). Tensors without negative
  /// values (activations after a ReLU) use 0…255, others −127…127. A channel that holds a NaN or an
  /// infinity arrives as NaN throughout, so that a loss that blew up is seen; one whose largest
  /// magnitude is below 2^-100 arrives as zero.
  kInt8 = 3,
};

const char* to_string(WireFormat format);

/// What an element takes on the wire, without scales.
constexpr double bytes_an_element(WireFormat format) {
  switch (format) {
    case WireFormat::kBFloat16:
      return 2;
    case WireFormat::kUint8:
    case WireFormat::kInt8:
      return 1;
    default:
      return 4;
  }
}

}  // namespace outrigger
