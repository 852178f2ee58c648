#pragma once

#include <cstdint>
#include <variant>
#include <vector>

/// What a layer computes, as plain data. Shapes are per sample.
namespace outrigger::nn {

/// Pixels {H, W, C} uint8 to (x / 255 - mean) / deviation, per channel. Always layer 0, so that
/// every cut and every machine starts from the same pixels.
struct Normalize {
  std::vector<float> mean;
  std::vector<float> deviation;
};
/// Weight {out, in / groups, kernel, kernel} as PyTorch has it; bias {out} where asked for.
struct Convolution {
  int64_t out_channels = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;
};
/// Over {N, H, W} of one micro-batch (or over {N} behind a linear layer). Without `affine_scale`
/// the scale is fixed at 1 and has no parameter that trains (ArcFace embeddings' last norm); it is
/// still stored under PyTorch's name.
struct BatchNorm {
  float epsilon = 1e-5f;
  float momentum = 0.1f;
  bool train_scale = true;
};
struct Relu {};
/// One slope per channel: weight {C}.
struct Prelu {};
struct Add {};
struct MaxPool {
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
};
/// Padding counts as zeros in the mean (PyTorch's default).
struct AveragePool {
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
};
/// {H, W, C} to {C}.
struct GlobalAveragePool {};
/// Weight {out, in}, bias {out}.
struct Linear {
  int64_t out_features = 0;
  bool bias = true;
};
/// Zeroes with probability p and scales by 1 / (1 - p); a pure function of (seed, slot, layer,
/// element in C, H, W order): dropout_factors (nn/dropout.h).
struct Dropout {
  float probability = 0.5f;
};
/// {H, W, C} to {C * H * W}, in PyTorch's order: channel outermost.
struct Flatten {};
/// Cosine logits with an additive angular margin on the sample's own class (Deng et al., "ArcFace",
/// CVPR 2019): scale * cos(theta + margin) there, scale * cos(theta) elsewhere and without labels.
/// Weight {classes, in}. The exact function is add_angular_margin (nn/angular_margin.h). Always the
/// last layer.
struct ArcFace {
  int64_t classes = 0;
  float margin = 0.5f;
  float scale = 64.0f;
};

using Operation = std::variant<Normalize, Convolution, BatchNorm, Relu, Prelu, Add, MaxPool,
                               AveragePool, GlobalAveragePool, Linear, Dropout, Flatten, ArcFace>;

}  // namespace outrigger::nn
