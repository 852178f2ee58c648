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

/// Which numbers a tensor's elements are rounded with. The key is a random one itself.
struct Noise {
  std::array<uint32_t, 2> key{};
};
/// In [0, 65536): an element's index and the key, mixed as MurmurHash3's finaliser does, whose
/// factors these are. No better generator is needed where numbers only have to be uniform and
/// unlike those of neighbours and of other tensors.
constexpr std::array<uint32_t, 2> kNoiseFactors = {0x85EBCA6B, 0xC2B2AE35};
uint16_t noise_at(const Noise& noise, uint32_t element);

struct Quantise {
  size_t row_count = 0;
  size_t channels = 0;
  const float* inverse_scale = nullptr;  ///< per channel; of stochastic ones times 65536
  bool is_signed = false;
  /// Rounds down after adding noise_at() / 65536, not to nearest even.
  bool is_stochastic = false;
  Noise noise;
  size_t first_element = 0;  ///< of the tensor; its index modulo 2^32 is what the noise depends on
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
