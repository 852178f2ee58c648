#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The codecs' loops, for the instruction set of the machine they run on. All give the same bits on
/// all of them: every step is exact or a single IEEE operation.
namespace outrigger::transport::kernels {

void floats_to_bfloat16(const float* from, uint16_t* to, size_t count);
void bfloat16_to_floats(const uint16_t* from, float* to, size_t count);

/// Raises magnitude[c] to the largest of the bit patterns of |rows[r][c]|; as integers these order
/// as the floats do, with infinities and NaNs above all numbers. Returns whether any value is below
/// zero.
bool channel_magnitudes(const float* rows, size_t row_count, size_t channels, int32_t* magnitude);

/// Philox 4x32-10 as in common/random.h, for the counters {first, c[1], c[2], c[3]}, {first + 1,
/// …}, …: four words each. Writes up to kPhiloxSlack words more than 4 · blocks.
struct PhiloxRange {
  std::array<uint32_t, 2> key{};
  std::array<uint32_t, 4> first{};
  size_t blocks = 0;
};
constexpr size_t kPhiloxSlack = 4 * 64;
void philox_blocks(const PhiloxRange& range, uint32_t* words);

struct Quantise {
  size_t row_count = 0;
  size_t channels = 0;
  const float* inverse_scale = nullptr;  ///< per channel
  bool is_signed = false;
  /// Per element, a number in [0, 65536): rounds down after adding number / 65536. Null: rounds to
  /// nearest even.
  const uint16_t* random = nullptr;
};
void quantise(const float* rows, uint8_t* to, const Quantise& how);

struct Dequantise {
  size_t row_count = 0;
  size_t channels = 0;
  const float* scale = nullptr;  ///< per channel
  bool is_signed = false;
};
void dequantise(const uint8_t* from, float* rows, const Dequantise& how);

}  // namespace outrigger::transport::kernels
