#include "common/error.h"
#include "nn/models/builder.h"

// MobileFaceNet (Chen et al., "MobileFaceNets", CCBR 2018) as insightface's arcface_torch has it by
// default, twice as wide as the paper's (scale 2, blocks 1, 4, 6, 2), and with its names.
namespace outrigger::nn::models {
namespace {

constexpr int64_t kLastChannels = 512;

std::string child(const std::string& name, int index) {
  return name + ".layers." + std::to_string(index);
}

int add_linear_block(GraphBuilder& builder, const std::string& name,
                     const Convolution& convolution) {
  builder.add(child(name, 0), convolution);
  return builder.add(child(name, 1), BatchNorm{});
}

int add_block(GraphBuilder& builder, const std::string& name, const Convolution& convolution) {
  add_linear_block(builder, name, convolution);
  return builder.add(child(name, 2), Prelu{});
}

// 1x1 up to `inner` channels, 3x3 depthwise, 1x1 down to `out`.
int add_depthwise(GraphBuilder& builder, const std::string& name, int64_t inner, int64_t out,
                  int64_t stride) {
  add_block(builder, child(name, 0), {.out_channels = inner, .kernel = 1});
  add_block(builder, child(name, 1),
            {.out_channels = inner, .kernel = 3, .stride = stride, .padding = 1, .groups = inner});
  return add_linear_block(builder, child(name, 2), {.out_channels = out, .kernel = 1});
}

int add_residuals(GraphBuilder& builder, const std::string& name, int count, int64_t inner,
                  int64_t channels, int last) {
  for (int i = 0; i < count; ++i) {
    const int main = add_depthwise(builder, child(name, i), inner, channels, 1);
    last = builder.add(child(name, i) + ".add", Add{}, {last, main});
  }
  return last;
}

}  // namespace

void build_mobilefacenet(GraphBuilder& builder, const ModelOptions& options) {
  if (options.height != options.width) {
    throw InvalidInput(
        "model mobilefacenet: its last convolution covers a square map, and images are " +
        std::to_string(options.height) + "x" + std::to_string(options.width));
  }
  add_symmetric_normalize(builder, options);
  add_block(builder, "layers.0", {.out_channels = 128, .kernel = 3, .stride = 2, .padding = 1});
  add_block(builder, "layers.1",
            {.out_channels = 128, .kernel = 3, .stride = 1, .padding = 1, .groups = 64});
  int last = add_depthwise(builder, "layers.2", 128, 128, 2);
  add_residuals(builder, "layers.3", 4, 128, 128, last);
  last = add_depthwise(builder, "layers.4", 256, 256, 2);
  add_residuals(builder, "layers.5", 6, 256, 256, last);
  last = add_depthwise(builder, "layers.6", 512, 256, 2);
  add_residuals(builder, "layers.7", 2, 256, 256, last);
  add_block(builder, "conv_sep", {.out_channels = kLastChannels, .kernel = 1});

  // Four strides of 2 over the input; 7 for images of 112.
  int64_t side = options.height;
  for (int i = 0; i < 4; ++i) side = (side + 1) / 2;
  add_linear_block(builder, "features.layers.0",
                   {.out_channels = kLastChannels, .kernel = side, .groups = kLastChannels});
  builder.add("features.layers.1", Flatten{});
  builder.add("features.layers.2", Linear{options.embedding.value_or(kDefaultEmbedding), false});
  builder.mark_embedding(builder.add("features.layers.3", BatchNorm{}));
  add_head(builder, options, "head", options.dropout);
}

}  // namespace outrigger::nn::models
