#include <array>

#include "nn/models/builder.h"

// Residual networks (He et al., CVPR 2016) with torchvision's names and its place of the stride (in
// the bottleneck's 3x3 convolution).
namespace outrigger::nn::models {
namespace {

struct Block {
  std::string name;
  int64_t channels;  // of its 3x3 convolutions
  int64_t stride;
  bool projects;  // the identity needs another shape
};

void add_convolution(GraphBuilder& builder, const std::string& block, int number,
                     const Convolution& convolution) {
  builder.add(block + ".conv" + std::to_string(number), convolution);
  builder.add(block + ".bn" + std::to_string(number), BatchNorm{});
}

// Adds the identity (projected where the shape changes) to the last layer's output.
void add_shortcut(GraphBuilder& builder, const Block& block, int identity, int64_t out_channels,
                  int main) {
  if (block.projects) {
    builder.add(block.name + ".downsample.0",
                Convolution{.out_channels = out_channels, .kernel = 1, .stride = block.stride},
                {identity});
    identity = builder.add(block.name + ".downsample.1", BatchNorm{});
  }
  builder.add(block.name + ".add", Add{}, {main, identity});
}

int add_basic_block(GraphBuilder& builder, const Block& block, int identity) {
  const Convolution convolution{
      .out_channels = block.channels, .kernel = 3, .stride = 1, .padding = 1};
  Convolution first = convolution;
  first.stride = block.stride;
  add_convolution(builder, block.name, 1, first);
  builder.add(block.name + ".relu1", Relu{});
  builder.add(block.name + ".conv2", convolution);
  const int main = builder.add(block.name + ".bn2", BatchNorm{});
  add_shortcut(builder, block, identity, block.channels, main);
  return builder.add(block.name + ".relu2", Relu{});
}

constexpr int64_t kExpansion = 4;

int add_bottleneck(GraphBuilder& builder, const Block& block, int identity) {
  add_convolution(builder, block.name, 1, {.out_channels = block.channels, .kernel = 1});
  builder.add(block.name + ".relu1", Relu{});
  add_convolution(
      builder, block.name, 2,
      {.out_channels = block.channels, .kernel = 3, .stride = block.stride, .padding = 1});
  builder.add(block.name + ".relu2", Relu{});
  builder.add(block.name + ".conv3",
              Convolution{.out_channels = kExpansion * block.channels, .kernel = 1});
  const int main = builder.add(block.name + ".bn3", BatchNorm{});
  add_shortcut(builder, block, identity, kExpansion * block.channels, main);
  return builder.add(block.name + ".relu3", Relu{});
}

void add_normalize(GraphBuilder& builder, const ModelOptions& options) {
  if (options.channels != 3) return add_symmetric_normalize(builder, options);
  // ImageNet's, as torchvision's pretrained weights expect.
  builder.add("normalize", Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}});
}

void build(GraphBuilder& builder, const ModelOptions& options, const std::array<int, 4>& stages,
           bool bottleneck) {
  add_normalize(builder, options);
  builder.add("conv1", Convolution{.out_channels = 64, .kernel = 7, .stride = 2, .padding = 3});
  builder.add("bn1", BatchNorm{});
  builder.add("relu", Relu{});
  int last = builder.add("maxpool", MaxPool{.kernel = 3, .stride = 2, .padding = 1});
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < stages[static_cast<size_t>(stage)]; ++i) {
      Block block;
      block.name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      block.channels = int64_t{64} << stage;
      block.stride = stage > 0 && i == 0 ? 2 : 1;
      block.projects = i == 0 && (stage > 0 || bottleneck);
      last =
          bottleneck ? add_bottleneck(builder, block, last) : add_basic_block(builder, block, last);
    }
  }
  builder.mark_embedding(builder.add("avgpool", GlobalAveragePool{}));
  add_head(builder, options, "fc", options.dropout);
}

}  // namespace

void build_resnet18(GraphBuilder& builder, const ModelOptions& options) {
  build(builder, options, {2, 2, 2, 2}, false);
}

void build_resnet50(GraphBuilder& builder, const ModelOptions& options) {
  build(builder, options, {3, 4, 6, 3}, true);
}

}  // namespace outrigger::nn::models
