#include <array>

#include "nn/models/builder.h"

// The residual network of ArcFace (Deng et al., CVPR 2019) with the names of insightface's
// arcface_torch: blocks of norm, convolution, norm, PReLU, strided convolution, norm; no activation
// behind the addition.
namespace outrigger::nn::models {
namespace {

struct FaceBlock {
  std::string name;
  int64_t channels;
  int64_t stride;  // other than 1 only where a stage begins, and there the identity is projected
};

int add_block(GraphBuilder& builder, const FaceBlock& block, int identity) {
  const Convolution convolution{
      .out_channels = block.channels, .kernel = 3, .stride = 1, .padding = 1};
  Convolution strided = convolution;
  strided.stride = block.stride;
  builder.add(block.name + ".bn1", BatchNorm{}, {identity});
  builder.add(block.name + ".conv1", convolution);
  builder.add(block.name + ".bn2", BatchNorm{});
  builder.add(block.name + ".prelu", Prelu{});
  builder.add(block.name + ".conv2", strided);
  const int main = builder.add(block.name + ".bn3", BatchNorm{});
  if (block.stride != 1) {
    builder.add(block.name + ".downsample.0",
                Convolution{.out_channels = block.channels, .kernel = 1, .stride = block.stride},
                {identity});
    identity = builder.add(block.name + ".downsample.1", BatchNorm{});
  }
  return builder.add(block.name + ".add", Add{}, {main, identity});
}

void build(GraphBuilder& builder, const ModelOptions& options, const std::array<int, 4>& stages) {
  add_symmetric_normalize(builder, options);
  builder.add("conv1", Convolution{.out_channels = 64, .kernel = 3, .stride = 1, .padding = 1});
  builder.add("bn1", BatchNorm{});
  int last = builder.add("prelu", Prelu{});
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < stages[static_cast<size_t>(stage)]; ++i) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      last = add_block(builder, {name, int64_t{64} << stage, i == 0 ? 2 : 1}, last);
    }
  }
  builder.add("bn2", BatchNorm{});
  builder.add("flatten", Flatten{});
  if (options.dropout > 0) builder.add("dropout", Dropout{options.dropout});
  builder.add("fc", Linear{options.embedding.value_or(kDefaultEmbedding)});
  builder.mark_embedding(builder.add("features", BatchNorm{.train_scale = false}));
  add_head(builder, options, "head", 0);
}

}  // namespace

void build_iresnet18(GraphBuilder& builder, const ModelOptions& options) {
  build(builder, options, {2, 2, 2, 2});
}

void build_iresnet50(GraphBuilder& builder, const ModelOptions& options) {
  build(builder, options, {3, 4, 14, 3});
}

}  // namespace outrigger::nn::models
