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

// Narrow groups fill a panel together, in which other groups' weights are zero.
bool groups_fit(const ConvolutionShape& s) {
  if (s.groups == 1) return true;
  // oneDNN's are as fast for groups of one channel, and of a panel.
  const int64_t width = group_width(s), panel = kernels().panel;
  return s.in_channels == s.out_channels && width > 1 && width < panel && panel % width == 0;
}

// Products for each pair of channels: at the edges the definition has fewer than nine an output.
bool spares_products(const ConvolutionShape& s) {
  const int64_t tiles = (s.in_height + 1) / 2 * ((s.in_width + 1) / 2);
  return kPoints * tiles < (3 * s.in_height - 2) * (3 * s.in_width - 2);
}

}  // namespace

bool is_winograd(const ConvolutionShape& s) {
  const int64_t panel = kernels().panel;
  return !s.bfloat16 && s.kernel == 3 && s.stride == 1 && s.padding == 1 && groups_fit(s) &&
         s.in_channels % panel == 0 && s.out_channels % panel == 0 && spares_products(s);
}

WinogradConvolution::WinogradConvolution(const ConvolutionShape& s, ConvolutionPass pass)
    : kernels_(&kernels()),
      pass_(pass),
      from_{s.in_height, s.in_width, s.in_channels},
      to_{s.out_height, s.out_width, s.out_channels},
      group_(s.groups == 1 ? 0 : group_width(s)),
      tiles_(tiles_within(kPassBytes, s.in_channels + s.out_channels)) {
  if (pass == ConvolutionPass::kBackwardData) std::swap(from_, to_);
  inner_ = group_ > 0 ? kernels_->panel : from_.channels;
}

size_t WinogradConvolution::weight_bytes() const {
  return static_cast<size_t>(kPoints * inner_ * to_.channels * kFloat);
}

size_t WinogradConvolution::scratchpad_bytes() const {
  return static_cast<size_t>(kPoints * tiles_ * (from_.channels + to_.channels) * kFloat);
}

// PyTorch's nine taps from one channel to another; null: they are in different groups.
const float* WinogradConvolution::taps_of(const float* plain, int64_t from, int64_t to) const {
  const bool backward = pass_ == ConvolutionPass::kBackwardData;
  const int64_t in = backward ? to : from, out = backward ? from : to;
  if (group_ == 0) return plain + (out * (backward ? to_ : from_).channels + in) * kTaps;
  return in / group_ == out / group_ ? plain + (out * group_ + in % group_) * kTaps : nullptr;
}

// To {16, panels of out, in, panel}.
void WinogradConvolution::load(const float* plain, std::byte* packed) const {
  constexpr int64_t kWidest = 64;
  float taps[kTaps * kWidest];
  const bool turned = pass_ == ConvolutionPass::kBackwardData;
  const int64_t panel = kernels_->panel;
  auto* points = reinterpret_cast<float*>(packed);
  for (int64_t out = 0; out < to_.channels; out += panel) {
    for (int64_t in = 0; in < inner_; ++in, points += panel) {
      for (int64_t lane = 0; lane < panel; ++lane) {
        const float* nine = taps_of(plain, group_ > 0 ? out + in : in, out + lane);
        for (int64_t tap = 0; tap < kTaps; ++tap)
          taps[tap * panel + lane] = nine == nullptr ? 0 : nine[turned ? kTaps - 1 - tap : tap];
      }
      kernels_->winograd.weights(taps, points, inner_ * to_.channels);
    }
  }
}

void WinogradConvolution::execute(std::byte* scratchpad, const void* from, const std::byte* packed,
                                  const float* bias, void* to, int64_t samples) const {
  const int64_t ins = from_.channels, outs = to_.channels, panel = kernels_->panel;
  const WinogradPlanes in{reinterpret_cast<float*>(scratchpad), tiles_ * ins, 0, ins};
  const WinogradPlanes out{in.data + kPoints * in.point, tiles_ * outs, 0, outs};
  const int64_t all = samples * tiles_of_sample(from_);
  for (int64_t first = 0; first < all; first += tiles_) {
    const int64_t count = std::min(tiles_, all - first);
    kernels_->winograd.input(from_, static_cast<const float*>(from), first, count, in);
    const auto* weights = reinterpret_cast<const float*>(packed);
    for (int64_t point = 0; point < kPoints; ++point) {
      for (int64_t column = 0; column < outs; column += panel, weights += inner_ * panel) {
        kernels_->product({.a = in.data + point * in.point + (group_ > 0 ? column : 0),
                           .a_row = ins,
                           .a_step = 1,
                           .b = weights,
                           .b_step = panel,
                           .result = out.data + point * out.point + column,
                           .result_row = outs,
                           .rows = count,
                           .inner = inner_,
                           .columns = panel});
      }
    }
    kernels_->winograd.output(to_, out, first, count, bias, static_cast<float*>(to));
  }
}

WinogradWeightGradient::WinogradWeightGradient(const ConvolutionShape& s, int64_t samples)
    : kernels_(&kernels()),
      in_{s.in_height, s.in_width, s.in_channels},
      out_{s.out_height, s.out_width, s.out_channels},
      group_(s.groups == 1 ? 0 : group_width(s)),
      outs_(s.groups == 1 ? s.out_channels : kernels().panel),
      all_tiles_(samples * tiles_of_sample(in_)),
      tiles_(std::min(all_tiles_,
                      tiles_within(kWeightGradientBytes, s.in_channels + s.out_channels))) {}

size_t WinogradWeightGradient::scratchpad_bytes() const {
  const int64_t planes = tiles_ * (in_.channels + out_.channels);
  const int64_t taps = group_ > 0 ? kTaps * in_.channels * outs_ : 0;
  return static_cast<size_t>((kPoints * (planes + kernels_->panel * outs_) + taps) * kFloat);
}

void WinogradWeightGradient::execute(std::byte* scratchpad, const void* x, const void* dy,
                                     float* gradient) const {
  const int64_t panel = kernels_->panel, ins = in_.channels;
  const int64_t point = tiles_ * panel;
  const WinogradPlanes in{reinterpret_cast<float*>(scratchpad), point, kPoints * point, panel};
  const WinogradPlanes out{in.data + kPoints * tiles_ * ins, point, kPoints * point, panel};
  float* points = out.data + kPoints * tiles_ * out_.channels;
  float* taps = group_ > 0 ? points + kPoints * panel * outs_ : gradient;
  for (int64_t first = 0; first < all_tiles_; first += tiles_) {
    const int64_t count = std::min(tiles_, all_tiles_ - first);
    kernels_->winograd.input(in_, static_cast<const float*>(x), first, count, in);
    kernels_->winograd.gradient(out_, static_cast<const float*>(dy), first, count, out);
    for (int64_t channel = 0; channel < ins; channel += panel) {
      multiply(in, out, count, points, channel / panel);
      kernels_->winograd.weight_gradient(points, panel * outs_, panel * outs_, first > 0,
                                         taps + channel * outs_, ins * outs_);
    }
  }
  if (group_ > 0) take_groups(taps, gradient);
}

// points {16, panel, outs_}: of the input channels of one panel.
void WinogradWeightGradient::multiply(const WinogradPlanes& in, const WinogradPlanes& out,
                                      int64_t tiles, float* points, int64_t in_panel) const {
  const int64_t panel = kernels_->panel;
  for (int64_t point = 0; point < kPoints; ++point) {
    const float* a = in.data + in_panel * in.panel + point * in.point;
    const float* b = out.data + point * out.point + (group_ > 0 ? in_panel * out.panel : 0);
    for (int64_t column = 0; column < outs_; column += panel, b += out.panel) {
      kernels_->product({.a = a,
                         .a_row = 1,
                         .a_step = panel,
                         .b = b,
                         .b_step = panel,
                         .result = points + point * panel * outs_ + column,
                         .result_row = outs_,
                         .rows = panel,
                         .inner = tiles,
                         .columns = panel});
    }
  }
}

// From {9, in, panel}, each input channel beside the outputs of its panel, those of its group.
void WinogradWeightGradient::take_groups(const float* taps, float* gradient) const {
  const int64_t panel = kernels_->panel, channels = in_.channels;
  for (int64_t tap = 0; tap < kTaps; ++tap, taps += channels * panel) {
    for (int64_t in = 0; in < group_; ++in) {
      for (int64_t out = 0; out < channels; ++out)
        *gradient++ = taps[(out / group_ * group_ + in) * panel + out % panel];
    }
  }
}

}  // namespace outrigger::nn::cpu
