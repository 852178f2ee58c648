#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/bytes.h"
#include "common/tensor.h"
#include "common/wire_format.h"
#include "transport/link.h"

/// How tensors travel. Every codec gives the same bytes on every machine.
namespace outrigger::transport {

/// Rounds up or down with the probability that makes the mean right, with numbers that depend on
/// this and on the element's place only: for gradients in kInt8.
struct StochasticRounding {
  uint64_t seed = 0;  ///< the job's
  uint64_t a = 0;     ///< which tensor: say, step and micro-batch
  uint32_t b = 0;     ///< which tensor: say, the layer
};

/// A tensor ready to travel: describe() goes into a frame's message and `data` is one of its
/// payloads.
struct EncodedTensor {
  WireFormat format = WireFormat::kFloat32;
  bool is_signed = false;  ///< kInt8 only
  Shape shape;             ///< {N, H, W, C} or {N, F}; dense, the last dimension innermost
  /// The elements; for kInt8 behind the C scales, which are padded to a multiple of 64 bytes.
  Payload data;
};

/// Encodes a copy. `tensor` is float32 or bfloat16 for all formats but kUint8, and uint8 for that.
/// Rounds to nearest (ties to even) unless told otherwise, which only kInt8 heeds. Throws
/// InvalidInput for another element type.
EncodedTensor encode(const ConstTensorView& tensor, WireFormat format,
                     const std::optional<StochasticRounding>& rounding = std::nullopt);

/// Likewise; a tensor that already has the format's type travels as it is, without a copy.
EncodedTensor encode(Tensor tensor, WireFormat format,
                     const std::optional<StochasticRounding>& rounding = std::nullopt);

/// Writes all but the data.
void describe(const EncodedTensor& tensor, ByteWriter& writer);

/// Reads what describe wrote, from bytes that anybody may have sent. Throws InvalidInput unless it
/// makes sense and `data` has exactly the size that it says.
EncodedTensor read_encoded(ByteReader& reader, Payload data);

/// Decodes into `out`, which has the same number of elements and is float32 or bfloat16 (uint8 for
/// kUint8). Throws InvalidInput otherwise.
void decode(const EncodedTensor& tensor, const TensorView& out);

/// Likewise into a new tensor of the same shape.
Tensor decode(const EncodedTensor& tensor, ElementType type);

/// The tensor in place, where the format stores elements as they are (all but kInt8). Lives as long
/// as `tensor.data`.
std::optional<ConstTensorView> view_of(const EncodedTensor& tensor);

/// The same of kInt8 with channels: whole numbers, kInt8 or kUint8 in the tensor's shape, and what
/// those of each channel are multiplied by, {C}.
struct PackedTensor {
  ConstTensorView elements;
  ConstTensorView scales;
};
std::optional<PackedTensor> packed_of(const EncodedTensor& tensor);

}  // namespace outrigger::transport
