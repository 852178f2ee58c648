#pragma once

#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/own_convolution.h"

/// Convolutions of few input channels, as the first ones of nets for images are, by the definition:
/// what a row of the kernel sees of a channels-last map lies in one piece, so matrix products read
/// the map itself (docs/decisions/0027-convolutions-of-few-channels.md).
namespace outrigger::nn::cpu {

/// Whether convolutions of this shape are computed so.
bool is_narrow(const ConvolutionShape& shape);

/// The input's maps with their padding around them.
class PaddedMap {
 public:
  explicit PaddedMap(const ConvolutionShape& shape);
  int64_t row() const { return row_; }  // floats from one row to the next
  /// Of one map, and of what is written behind it.
  int64_t floats() const { return floats_; }
  /// The map with its padding, in `to` where there is some, else where it was.
  const float* pad(const float* map, float* to) const;
  void strip(const float* padded, float* map) const;

 private:
  int64_t height_, width_, row_, border_rows_, border_, floats_;  // widths in floats
};

class NarrowForward final : public OwnConvolution {
 public:
  explicit NarrowForward(const ConvolutionShape& shape);

  size_t weight_bytes() const override;
  size_t scratchpad_bytes() const override;
  void load(const float* plain, std::byte* packed) const override;
  void execute(std::byte* scratchpad, const void* from, const std::byte* packed, const float* bias,
               void* to, int64_t samples) const override;

 private:
  const Kernels* kernels_ = &kernels();
  const ConvolutionShape shape_;
  const PaddedMap map_;
};

class NarrowBackwardData final : public OwnConvolution {
 public:
  explicit NarrowBackwardData(const ConvolutionShape& shape);

  size_t weight_bytes() const override;
  size_t scratchpad_bytes() const override;
  void load(const float* plain, std::byte* packed) const override;
  void execute(std::byte* scratchpad, const void* from, const std::byte* packed, const float* bias,
               void* to, int64_t samples) const override;

 private:
  int64_t run_floats() const;
  void multiply(const float* dy, const float* weights, float* runs) const;

  const Kernels* kernels_ = &kernels();
  const ConvolutionShape shape_;
  const PaddedMap map_;
  const int64_t run_row_;  // floats from what one place adds to a row to what the next does
};

class NarrowWeightGradient final : public OwnWeightGradient {
 public:
  NarrowWeightGradient(const ConvolutionShape& shape, int64_t samples);

  size_t scratchpad_bytes() const override;
  void execute(std::byte* scratchpad, const void* x, const void* dy,
               float* gradient) const override;

 private:
  void add_rows(const float* x, const float* dy, int64_t rows, bool first, float* gradient) const;

  const Kernels* kernels_ = &kernels();
  const ConvolutionShape shape_;
  const PaddedMap map_;
  const int64_t samples_, rows_;  // rows of dy at a time
};

}  // namespace outrigger::nn::cpu
