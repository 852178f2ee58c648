#include "transport/codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/random.h"
#include "transport/internal/codec_kernels.h"

namespace outrigger::transport {

using outrigger::to_string;

namespace {

constexpr size_t kMaxRank = 8;
constexpr uint64_t kMaxElements = uint64_t{1} << 48;
constexpr size_t kScaleAlignment = 64;
/// Elements that are converted at a time, so that what one loop writes the next one finds in the
/// cache.
constexpr size_t kBlock = 4096;
constexpr int32_t kInfinityBits = 0x7F800000;
constexpr float kSmallest = 0x1.0p-100f;
/// Of a step, as whole numbers that noise is added to.
constexpr float kNoiseSteps = 65536.0F;

ElementType stored_type(WireFormat format) {
  switch (format) {
    case WireFormat::kUint8:
      return ElementType::kUint8;
    case WireFormat::kFloat32:
      return ElementType::kFloat32;
    case WireFormat::kBFloat16:
      return ElementType::kBFloat16;
    case WireFormat::kInt8:
      break;
  }
  return ElementType::kInt8;
}

[[noreturn]] void refuse_type(ElementType type, WireFormat format) {
  throw InvalidInput(std::string("a tensor of ") + to_string(type) + " cannot travel as " +
                     to_string(format) +
                     "; uint8 is for uint8, the others for float32 and bfloat16");
}

void check_types(ElementType type, WireFormat format) {
  const bool is_float = type == ElementType::kFloat32 || type == ElementType::kBFloat16;
  if (format == WireFormat::kUint8 ? type != ElementType::kUint8 : !is_float)
    refuse_type(type, format);
}

struct Rows {
  size_t count = 0;
  size_t channels = 0;
};

Rows rows_of(const Shape& shape) {
  const auto elements = static_cast<size_t>(element_count(shape));
  const size_t channels = shape.empty() ? 1 : static_cast<size_t>(shape.back());
  return {channels == 0 ? 0 : elements / channels, channels};
}

size_t scales_size(size_t channels) {
  return (channels * sizeof(float) + kScaleAlignment - 1) / kScaleAlignment * kScaleAlignment;
}

/// The tensor's rows as float32, a block of whole rows at a time: `use(floats, first_row,
/// row_count)`.
template <typename Use>
void for_row_blocks(const ConstTensorView& tensor, const Use& use) {
  const Rows rows = rows_of(tensor.shape);
  if (rows.channels == 0) return;
  const size_t block = std::max<size_t>(kBlock / rows.channels, 1);
  std::vector<float> widened(tensor.type == ElementType::kBFloat16 ? block * rows.channels : 0);
  for (size_t r = 0; r < rows.count; r += block) {
    const size_t count = std::min(block, rows.count - r);
    const size_t at = r * rows.channels;
    if (tensor.type == ElementType::kFloat32) {
      use(reinterpret_cast<const float*>(tensor.data) + at, r, count);
    } else {
      const auto* from = reinterpret_cast<const uint16_t*>(tensor.data) + at;
      kernels::bfloat16_to_floats(from, widened.data(), count * rows.channels);
      use(widened.data(), r, count);
    }
  }
}

kernels::Noise noise_of(const StochasticRounding& rounding) {
  const auto words = philox(
      random_key(rounding.seed, RandomUse::kStochasticRounding),
      {0, rounding.b, static_cast<uint32_t>(rounding.a), static_cast<uint32_t>(rounding.a >> 32)});
  return {.key = {words[0], words[1]}};
}

struct Scales {
  std::vector<float> scale;
  std::vector<float> inverse;
  bool is_signed = false;
};

/// `whole`: what the elements of a step are multiplied by once more.
Scales find_scales(const ConstTensorView& tensor, float whole) {
  const size_t channels = rows_of(tensor.shape).channels;
  std::vector<int32_t> magnitude(channels);
  Scales scales;
  for_row_blocks(tensor, [&](const float* rows, size_t, size_t count) {
    scales.is_signed |= kernels::channel_magnitudes(rows, count, channels, magnitude.data());
  });
  const float steps = scales.is_signed ? 127.0F : 255.0F;
  for (const int32_t bits : magnitude) {
    const auto largest = std::bit_cast<float>(bits);
    const bool finite = bits < kInfinityBits;
    const bool tiny = finite && largest < kSmallest;
    scales.scale.push_back(!finite ? std::bit_cast<float>(0x7FC00000)
                           : tiny  ? 0.0F
                                   : largest / steps);
    scales.inverse.push_back(!finite || tiny ? 0.0F : steps / largest * whole);
  }
  return scales;
}

EncodedTensor encode_int8(const ConstTensorView& tensor,
                          const std::optional<StochasticRounding>& rounding) {
  const Rows rows = rows_of(tensor.shape);
  const Scales scales = find_scales(tensor, rounding ? kNoiseSteps : 1.0F);
  const size_t head = scales_size(rows.channels);
  Tensor data(ElementType::kUint8, {static_cast<int64_t>(head + rows.count * rows.channels)});
  std::byte* bytes = data.view().data;
  std::memset(bytes, 0, head);
  std::copy(scales.scale.begin(), scales.scale.end(), reinterpret_cast<float*>(bytes));
  const kernels::Noise noise = rounding ? noise_of(*rounding) : kernels::Noise{};
  for_row_blocks(tensor, [&](const float* from, size_t first, size_t count) {
    const size_t at = first * rows.channels;
    kernels::quantise(from, reinterpret_cast<uint8_t*>(bytes) + head + at,
                      {.row_count = count,
                       .channels = rows.channels,
                       .inverse_scale = scales.inverse.data(),
                       .is_signed = scales.is_signed,
                       .is_stochastic = rounding.has_value(),
                       .noise = noise,
                       .first_element = at});
  });
  return {WireFormat::kInt8, scales.is_signed, tensor.shape, Payload::of(std::move(data))};
}

/// Between uint8, float32 and bfloat16; the types differ only among the last two.
void convert(const ConstTensorView& from, const TensorView& to) {
  const auto count = static_cast<size_t>(element_count(from.shape));
  if (from.type == to.type) {
    if (count > 0) std::memcpy(to.data, from.data, from.bytes());
  } else if (from.type == ElementType::kFloat32) {
    kernels::floats_to_bfloat16(reinterpret_cast<const float*>(from.data),
                                reinterpret_cast<uint16_t*>(to.data), count);
  } else {
    kernels::bfloat16_to_floats(reinterpret_cast<const uint16_t*>(from.data),
                                reinterpret_cast<float*>(to.data), count);
  }
}

void decode_int8(const EncodedTensor& tensor, const TensorView& out) {
  const Rows rows = rows_of(tensor.shape);
  if (rows.channels == 0) return;
  const std::byte* bytes = tensor.data.bytes.data();
  std::vector<float> scale(rows.channels);
  std::memcpy(scale.data(), bytes, rows.channels * sizeof(float));
  const auto* from = reinterpret_cast<const uint8_t*>(bytes) + scales_size(rows.channels);
  const size_t block = std::max<size_t>(kBlock / rows.channels, 1);
  const bool narrow = out.type == ElementType::kBFloat16;
  std::vector<float> floats(narrow ? block * rows.channels : 0);
  for (size_t r = 0; r < rows.count; r += block) {
    const size_t count = std::min(block, rows.count - r);
    const size_t at = r * rows.channels;
    float* to = narrow ? floats.data() : reinterpret_cast<float*>(out.data) + at;
    kernels::dequantise(from + at, to,
                        {.row_count = count,
                         .channels = rows.channels,
                         .scale = scale.data(),
                         .is_signed = tensor.is_signed});
    if (narrow)
      kernels::floats_to_bfloat16(to, reinterpret_cast<uint16_t*>(out.data) + at,
                                  count * rows.channels);
  }
}

/// What the data of such a tensor occupies; nothing if it cannot be represented.
std::optional<size_t> encoded_size(WireFormat format, const Shape& shape) {
  uint64_t elements = 1;
  for (const int64_t size : shape) {
    // Every product on the way is checked: a last size of 0 must not hide what would overflow
    // elsewhere.
    if (size < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements))
      return std::nullopt;
    if (elements > kMaxElements) return std::nullopt;
  }
  if (format != WireFormat::kInt8) return elements * element_size(stored_type(format));
  const uint64_t channels = shape.empty() ? 1 : static_cast<uint64_t>(shape.back());
  if (channels > kMaxElements) return std::nullopt;
  return elements + scales_size(channels);
}

}  // namespace

EncodedTensor encode(const ConstTensorView& tensor, WireFormat format,
                     const std::optional<StochasticRounding>& rounding) {
  check_types(tensor.type, format);
  if (format == WireFormat::kInt8) return encode_int8(tensor, rounding);
  Tensor copy(stored_type(format), tensor.shape);
  convert(tensor, copy.view());
  return {format, false, tensor.shape, Payload::of(std::move(copy))};
}

EncodedTensor encode(Tensor tensor, WireFormat format,
                     const std::optional<StochasticRounding>& rounding) {
  if (tensor.type() != stored_type(format) || tensor.empty())
    return encode(tensor.view(), format, rounding);
  Shape shape = tensor.shape();
  return {format, false, std::move(shape), Payload::of(std::move(tensor))};
}

void describe(const EncodedTensor& tensor, ByteWriter& writer) {
  writer.number(tensor.format);
  writer.number(static_cast<uint8_t>(tensor.is_signed));
  writer.number(static_cast<uint8_t>(tensor.shape.size()));
  for (const int64_t size : tensor.shape) writer.number(size);
}

EncodedTensor read_encoded(ByteReader& reader, Payload data) {
  const auto format = reader.number<uint8_t>();
  const auto is_signed = reader.number<uint8_t>();
  const auto rank = reader.number<uint8_t>();
  if (format > static_cast<uint8_t>(WireFormat::kInt8)) {
    throw InvalidInput("a tensor in the unknown wire format " + std::to_string(format));
  }
  if (is_signed > 1 || rank > kMaxRank)
    throw InvalidInput("a tensor of rank " + std::to_string(rank));
  EncodedTensor tensor{static_cast<WireFormat>(format), is_signed == 1, Shape(rank),
                       std::move(data)};
  for (int64_t& size : tensor.shape) size = reader.number<int64_t>();
  const auto expected = encoded_size(tensor.format, tensor.shape);
  if (expected != tensor.data.bytes.size()) {
    throw InvalidInput("a tensor " + to_string(tensor.shape) + " in " + to_string(tensor.format) +
                       " came with " + std::to_string(tensor.data.bytes.size()) + " bytes");
  }
  return tensor;
}

void decode(const EncodedTensor& tensor, const TensorView& out) {
  check_types(out.type, tensor.format);
  if (element_count(out.shape) != element_count(tensor.shape)) {
    throw InvalidInput("a tensor " + to_string(tensor.shape) + " was received where " +
                       to_string(out.shape) + " is expected");
  }
  if (tensor.format == WireFormat::kInt8) return decode_int8(tensor, out);
  convert({stored_type(tensor.format), tensor.shape, tensor.data.bytes.data()}, out);
}

Tensor decode(const EncodedTensor& tensor, ElementType type) {
  Tensor result(type, tensor.shape);
  decode(tensor, result.view());
  return result;
}

std::optional<ConstTensorView> view_of(const EncodedTensor& tensor) {
  if (tensor.format == WireFormat::kInt8) return std::nullopt;
  return ConstTensorView{stored_type(tensor.format), tensor.shape, tensor.data.bytes.data()};
}

std::optional<PackedTensor> packed_of(const EncodedTensor& tensor) {
  if (tensor.format != WireFormat::kInt8 || tensor.shape.empty()) return std::nullopt;
  const std::byte* scales = tensor.data.bytes.data();
  const int64_t channels = tensor.shape.back();
  const ElementType type = tensor.is_signed ? ElementType::kInt8 : ElementType::kUint8;
  return PackedTensor{{type, tensor.shape, scales + scales_size(static_cast<size_t>(channels))},
                      {ElementType::kFloat32, {channels}, scales}};
}

}  // namespace outrigger::transport
