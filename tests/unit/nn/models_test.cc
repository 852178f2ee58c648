#include "nn/models.h"

#include <gmock/gmock.h>

#include <cmath>

#include "common/error.h"
#include "tests/unit/nn/cut_names.h"

namespace outrigger::nn {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Graph build(const std::string& name, HeadKind head = HeadKind::kLinear, int64_t side = 112,
            int64_t classes = 10) {
  ModelOptions options;
  options.name = name;
  options.height = options.width = side;
  options.classes = classes;
  options.head = head;
  return build_model(options);
}

// What PyTorch's models of these names have: torchvision's resnets with 1000 classes, insightface's
// backbones.
TEST(Models, HaveAsManyParametersAsPyTorchs) {
  EXPECT_EQ(build("resnet18", HeadKind::kLinear, 224, 1000).parameter_count(), 11'689'512);
  EXPECT_EQ(build("resnet50", HeadKind::kLinear, 224, 1000).parameter_count(), 25'557'032);
  EXPECT_EQ(build("iresnet18", HeadKind::kNone).parameter_count(), 24'025'600);
  EXPECT_EQ(build("iresnet50", HeadKind::kNone).parameter_count(), 43'590'848);
}

TEST(Models, HaveTheKnownCost) {
  const Graph resnet18 = build("resnet18", HeadKind::kLinear, 224, 1000);
  EXPECT_NEAR(static_cast<double>(resnet18.multiply_adds(resnet18.whole())), 1.814e9, 0.001e9);
  const Graph resnet50 = build("resnet50", HeadKind::kLinear, 224, 1000);
  EXPECT_NEAR(static_cast<double>(resnet50.multiply_adds(resnet50.whole())), 4.089e9, 0.001e9);
}

TEST(Models, CanAllBeBuiltWithEveryHead) {
  for (const std::string& name : model_names()) {
    const Graph linear = build(name), arcface = build(name, HeadKind::kArcFace),
                none = build(name, HeadKind::kNone);
    EXPECT_EQ(linear.layers().back().output, Shape{10}) << name;
    EXPECT_EQ(arcface.layers().back().output, Shape{10}) << name;
    EXPECT_TRUE(std::holds_alternative<ArcFace>(arcface.layers().back().operation)) << name;
    EXPECT_EQ(none.embedding_layer(), none.size() - 1) << name;
    EXPECT_EQ(linear.layers()[static_cast<size_t>(linear.embedding_layer())].output,
              none.layers().back().output);
  }
}

TEST(Models, AreCutBehindEveryStageAndBlock) {
  EXPECT_THAT(cut_names(build("resnet18")),
              AllOf(Contains("relu"), Contains("maxpool"), Contains("layer2.0.relu2")));
  EXPECT_EQ(build("resnet18").cut("layer2").shape, (Shape{14, 14, 128}));
  const auto iresnet = cut_names(build("iresnet18"));
  for (const char* name : {"prelu", "layer1.0.add", "layer1.1.add", "layer4.1.add", "bn2"}) {
    EXPECT_THAT(iresnet, Contains(name));
  }
  EXPECT_EQ(build("iresnet18").cut("layer1").shape, (Shape{56, 56, 64}));
  EXPECT_THAT(cut_names(build("mobilefacenet")),
              AllOf(Contains("layers.0.layers.2"), Contains("layers.3.layers.0.add")));
  EXPECT_THAT(cut_names(build("lenet5")),
              AllOf(Contains("relu1"), Contains("pool1"), Contains("pool2")));
}

TEST(Models, SmallAndGreyImagesArePossible) {
  ModelOptions options;
  options.name = "lenet5";
  options.height = options.width = 28;
  options.channels = 1;
  options.classes = 10;
  EXPECT_EQ(build_model(options).parameter_count(), 44'426);
  EXPECT_EQ(build("iresnet18", HeadKind::kLinear, 32).cut("bn2").shape, (Shape{2, 2, 512}));
  EXPECT_EQ(build("mobilefacenet", HeadKind::kLinear, 64).layers().back().output, Shape{10});
}

TEST(Models, DropoutStandsBeforeTheLastLinearLayerWhereAskedFor) {
  for (const char* name : {"resnet18", "iresnet18", "lenet5"}) {
    ModelOptions options;
    options.name = name;
    options.classes = 10;
    options.dropout = 0.4f;
    const Graph graph = build_model(options);
    EXPECT_EQ(graph.size(), build(name).size() + 1) << name;
    EXPECT_EQ(graph.parameter_count(), build(name).parameter_count()) << name;
  }
}

TEST(Models, WhatCannotBeBuiltIsRefusedWithTheReason) {
  EXPECT_THAT([] { build("vgg16"); },
              ThrowsMessage<InvalidInput>(AllOf(HasSubstr("vgg16"), HasSubstr("iresnet18"))));
  EXPECT_THAT([] { build("resnet18", HeadKind::kLinear, 8); },
              ThrowsMessage<InvalidInput>(HasSubstr("8x8")));
  EXPECT_THAT([] { build("resnet18", HeadKind::kLinear, 64, 1); },
              ThrowsMessage<InvalidInput>(HasSubstr("classes")));
  ModelOptions options;
  options.name = "resnet18";
  options.classes = 10;
  options.embedding = 128;
  EXPECT_THAT([&] { build_model(options); },
              ThrowsMessage<InvalidInput>(HasSubstr("embedding 128")));
  options.embedding.reset();
  options.freeze_until = "layer7";
  EXPECT_THAT([&] { build_model(options); }, ThrowsMessage<InvalidInput>(HasSubstr("layer7")));
  options = {};
  options.name = "mobilefacenet";
  options.height = 96;
  options.classes = 10;
  EXPECT_THAT([&] { build_model(options); }, ThrowsMessage<InvalidInput>(HasSubstr("96x112")));
}

struct Arenas {
  std::vector<float> parameters, buffers;
};

Arenas initialized(const Graph& graph, uint64_t seed) {
  Arenas arenas{std::vector<float>(static_cast<size_t>(graph.parameter_count())),
                std::vector<float>(static_cast<size_t>(graph.buffer_count()))};
  initialize(graph, seed, arenas.parameters, arenas.buffers);
  return arenas;
}

TEST(Initialize, DependsOnSeedAndNameAlone) {
  const Graph a = build("lenet5"), b = build("lenet5", HeadKind::kArcFace);
  const Arenas one = initialized(a, 1), again = initialized(a, 1), other = initialized(a, 2),
               net = initialized(b, 1);
  EXPECT_EQ(one.parameters, again.parameters);
  EXPECT_NE(one.parameters, other.parameters);
  const auto shared =
      static_cast<std::ptrdiff_t>(a.parameter_range({0, a.cut("relu3").layers}).size);
  EXPECT_TRUE(
      std::equal(one.parameters.begin(), one.parameters.begin() + shared, net.parameters.begin()));
}

TEST(Initialize, GivesASegmentItsPartOfTheWhole) {
  const Graph graph = build("resnet18", HeadKind::kLinear, 32);
  const Arenas whole = initialized(graph, 1);
  const Segment segment{graph.cut("layer1").layers, graph.cut("layer2").layers};
  const auto parameters = part_of(std::span(whole.parameters), graph.parameter_range(segment));
  const auto buffers = part_of(std::span(whole.buffers), graph.buffer_range(segment));
  Arenas part{std::vector<float>(parameters.size()), std::vector<float>(buffers.size())};
  initialize(graph, segment, 1, part.parameters, part.buffers);
  EXPECT_TRUE(std::ranges::equal(part.parameters, parameters));
  EXPECT_TRUE(std::ranges::equal(part.buffers, buffers));
}

TEST(Initialize, ConvolutionsHaveKaimingsSpreadAndNormsStartAsIdentity) {
  const Graph graph = build("resnet18", HeadKind::kLinear, 32);
  const Arenas arenas = initialized(graph, 3);
  for (const Parameter& parameter : graph.parameters()) {
    const std::vector<float> values(arenas.parameters.begin() + parameter.range.offset,
                                    arenas.parameters.begin() + parameter.range.end());
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    if (parameter.name == "layer3.0.conv1.weight") {
      EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())),
                  std::sqrt(2.0 / (256 * 9)), 3e-4);
    }
    if (parameter.kind == ParameterKind::kNormScale) {
      EXPECT_EQ(squares, static_cast<double>(values.size()));
    }
    if (parameter.kind == ParameterKind::kNormShift) {
      EXPECT_EQ(squares, 0);
    }
    if (parameter.name == "fc.weight") {
      EXPECT_NEAR(*std::max_element(values.begin(), values.end()), 1 / std::sqrt(512.0), 1e-3);
    }
  }
  const NormBuffer& buffer = graph.buffers()[0];
  EXPECT_EQ(arenas.buffers[static_cast<size_t>(buffer.range.offset)], 0.0f);
  EXPECT_EQ(arenas.buffers[static_cast<size_t>(buffer.range.offset + buffer.channels)], 1.0f);
}

}  // namespace
}  // namespace outrigger::nn
