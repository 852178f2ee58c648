#include "nn/cpu/winograd.h"

#include <algorithm>
#include <utility>

namespace outrigger::nn::cpu {
namespace {

constexpr int64_t kPoints = 16, kTaps = 9;
constexpr int64_t kFloat = sizeof(float);

// What the planes of a pass forward or backward may take, and those of a weight gradient. Measured
// with 512 KiB of a core's own cache and 32 MiB of the machine's: half and double the first cost
// 5 %; the weights of deep layers are read once for all tiles of a turn, hence the least of them.
constexpr int64_t kPassBytes = 1024 * 1024;
constexpr int64_t kWeightGradientBytes = 4 * 1024 * 1024;
constexpr int64_t kLeastTiles = 64;

int64_t tiles_of_sample(const WinogradMap& map) {
  return (map.height + 1) / 2 * ((map.width + 1) / 2);
}

int64_t tiles_within(int64_t bytes, int64_t channels) {
  return std::max(kLeastTiles, bytes / (kPoints * channels * kFloat) / 12 * 12);
}

// PyTorch's taps of one input channel and a panel of outputs, as {9, panel}.
void gather_taps(const float* plain, int64_t out_step, int64_t panel, bool turned, float* taps) {
  for (int64_t lane = 0; lane < panel; ++lane) {
    for (int64_t tap = 0; tap < kTaps; ++tap)
      taps[tap * panel + lane] = plain[lane * out_step + (turned ? kTaps - 1 - tap : tap)];
  }
}

// Products for each pair of channels: at the edges the definition has fewer than nine an output.
bool spares_products(const ConvolutionShape& s) {
  const int64_t tiles = (s.in_height + 1) / 2 * ((s.in_width + 1) / 2);
  return kPoints * tiles < (3 * s.in_height - 2) * (3 * s.in_width - 2);
}

}  // namespace

bool is_winograd(const ConvolutionShape& s) {
  const int64_t panel = kernels().panel;
  return !s.bfloat16 && s.kernel == 3 && s.stride == 1 && s.padding == 1 && s.groups == 1 &&
         s.in_channels % panel == 0 && s.out_channels % panel == 0 && spares_products(s);
}

WinogradConvolution::WinogradConvolution(const ConvolutionShape& s, ConvolutionPass pass)
    : kernels_(&kernels()),
      pass_(pass),
      from_{s.in_height, s.in_width, s.in_channels},
      to_{s.out_height, s.out_width, s.out_channels},
      tiles_(tiles_within(kPassBytes, s.in_channels + s.out_channels)) {
  if (pass == ConvolutionPass::kBackwardData) std::swap(from_, to_);
}

size_t WinogradConvolution::weight_bytes() const {
  return static_cast<size_t>(kPoints * from_.channels * to_.channels * kFloat);
}

size_t WinogradConvolution::scratchpad_bytes() const {
  return static_cast<size_t>(kPoints * tiles_ * (from_.channels + to_.channels) * kFloat);
}

void WinogradConvolution::load(const float* plain, std::byte* packed) const {
  constexpr int64_t kWidest = 64;
  float taps[kTaps * kWidest];
  const bool backward = pass_ == ConvolutionPass::kBackwardData;
  const int64_t panel = kernels_->panel, ins = from_.channels, outs = to_.channels;
  const int64_t in_step = kTaps * (backward ? outs : 1), out_step = kTaps * (backward ? 1 : ins);
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t out = 0; out < outs; out += panel) {
    for (int64_t in = 0; in < ins; ++in, to += panel) {
      gather_taps(plain + out * out_step + in * in_step, out_step, panel, backward, taps);
      kernels_->winograd.weights(taps, to, ins * outs);
    }
  }
}

void WinogradConvolution::execute(std::byte* scratchpad, const float* from, const std::byte* packed,
                                  const float* bias, float* to, int64_t samples) const {
  const int64_t ins = from_.channels, outs = to_.channels, panel = kernels_->panel;
  const WinogradPlanes in{reinterpret_cast<float*>(scratchpad), tiles_ * ins, 0, ins};
  const WinogradPlanes out{in.data + kPoints * in.point, tiles_ * outs, 0, outs};
  const int64_t all = samples * tiles_of_sample(from_);
  for (int64_t first = 0; first < all; first += tiles_) {
    const int64_t count = std::min(tiles_, all - first);
    kernels_->winograd.input(from_, from, first, count, in);
    const auto* weights = reinterpret_cast<const float*>(packed);
    for (int64_t point = 0; point < kPoints; ++point) {
      for (int64_t column = 0; column < outs; column += panel, weights += ins * panel) {
        kernels_->product({.a = in.data + point * in.point,
                           .a_row = ins,
                           .a_step = 1,
                           .a_jump = 0,
                           .b = weights,
                           .b_step = panel,
                           .result = out.data + point * out.point + column,
                           .result_row = outs,
                           .rows = count,
                           .inner = ins,
                           .outer = 1,
                           .columns = panel,
                           .start = nullptr,
                           .add = false});
      }
    }
    kernels_->winograd.output(to_, out, first, count, bias, to);
  }
}

WinogradWeightGradient::WinogradWeightGradient(const ConvolutionShape& s, int64_t samples)
    : kernels_(&kernels()),
      in_{s.in_height, s.in_width, s.in_channels},
      out_{s.out_height, s.out_width, s.out_channels},
      all_tiles_(samples * tiles_of_sample(in_)),
      tiles_(std::min(all_tiles_,
                      tiles_within(kWeightGradientBytes, s.in_channels + s.out_channels))) {}

size_t WinogradWeightGradient::scratchpad_bytes() const {
  const int64_t planes = tiles_ * (in_.channels + out_.channels);
  return static_cast<size_t>(kPoints * (planes + kernels_->panel * out_.channels) * kFloat);
}

void WinogradWeightGradient::execute(std::byte* scratchpad, const float* x, const float* dy,
                                     float* gradient) const {
  const int64_t panel = kernels_->panel, outs = out_.channels;
  const int64_t point = tiles_ * panel;
  const WinogradPlanes in{reinterpret_cast<float*>(scratchpad), point, kPoints * point, panel};
  const WinogradPlanes out{in.data + kPoints * tiles_ * in_.channels, point, kPoints * point,
                           panel};
  float* points = out.data + kPoints * tiles_ * outs;
  for (int64_t first = 0; first < all_tiles_; first += tiles_) {
    const int64_t count = std::min(tiles_, all_tiles_ - first);
    kernels_->winograd.input(in_, x, first, count, in);
    kernels_->winograd.gradient(out_, dy, first, count, out);
    for (int64_t channel = 0; channel < in_.channels; channel += panel) {
      multiply(in, out, count, points, channel / panel);
      kernels_->winograd.weight_gradient(points, panel * outs, panel * outs, first > 0,
                                         gradient + channel * outs, in_.channels * outs);
    }
  }
}

// points {16, panel, out}: of the input channels of one panel.
void WinogradWeightGradient::multiply(const WinogradPlanes& in, const WinogradPlanes& out,
                                      int64_t tiles, float* points, int64_t in_panel) const {
  const int64_t panel = kernels_->panel, outs = out_.channels;
  for (int64_t point = 0; point < kPoints; ++point) {
    const float* a = in.data + in_panel * in.panel + point * in.point;
    const float* b = out.data + point * out.point;
    for (int64_t column = 0; column < outs; column += panel, b += out.panel) {
      kernels_->product({.a = a,
                         .a_row = 1,
                         .a_step = panel,
                         .a_jump = 0,
                         .b = b,
                         .b_step = panel,
                         .result = points + point * panel * outs + column,
                         .result_row = outs,
                         .rows = panel,
                         .inner = tiles,
                         .outer = 1,
                         .columns = panel,
                         .start = nullptr,
                         .add = false});
    }
  }
}

}  // namespace outrigger::nn::cpu
