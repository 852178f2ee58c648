#include "nn/graph.h"

#include <gmock/gmock.h>

#include "common/error.h"
#include "nn/graph_builder.h"
#include "tests/unit/nn/cut_names.h"

namespace outrigger::nn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

GraphBuilder start() {
  GraphBuilder builder("net", {8, 8, 3});
  builder.add("normalize", Normalize{{0, 0, 0}, {1, 1, 1}});
  return builder;
}

// normalize, conv, bn, relu, a residual block, pool, flatten, fc
Graph small_resnet(const std::string& freeze = "") {
  GraphBuilder builder = start();
  builder.add("conv", Convolution{.out_channels = 4, .kernel = 3, .stride = 2, .padding = 1});
  builder.add("bn", BatchNorm{});
  const int identity = builder.add("relu", Relu{});
  builder.add("block.conv", Convolution{.out_channels = 4, .kernel = 3, .padding = 1});
  const int main = builder.add("block.bn", BatchNorm{});
  builder.add("block.add", Add{}, {main, identity});
  builder.add("block.relu", Relu{});
  builder.add("pool", MaxPool{});
  builder.add("flatten", Flatten{});
  builder.add("fc", Linear{5});
  if (!freeze.empty()) builder.freeze_until(freeze);
  return builder.build();
}

TEST(Graph, InfersTheShapeOfEveryLayer) {
  const Graph graph = small_resnet();
  std::vector<Shape> shapes;
  for (const Layer& layer : graph.layers()) shapes.push_back(layer.output);
  EXPECT_THAT(shapes, ElementsAre(Shape{8, 8, 3}, Shape{4, 4, 4}, Shape{4, 4, 4}, Shape{4, 4, 4},
                                  Shape{4, 4, 4}, Shape{4, 4, 4}, Shape{4, 4, 4}, Shape{4, 4, 4},
                                  Shape{2, 2, 4}, Shape{16}, Shape{5}));
}

TEST(Graph, LaysParametersAndBuffersOutInLayerOrder) {
  const Graph graph = small_resnet();
  int64_t offset = 0;
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters()) {
    EXPECT_EQ(parameter.range.offset, offset) << parameter.name;
    EXPECT_EQ(parameter.range.size, element_count(parameter.shape)) << parameter.name;
    offset = parameter.range.end();
    names.push_back(parameter.name);
  }
  EXPECT_THAT(names, ElementsAre("conv.weight", "bn.weight", "bn.bias", "block.conv.weight",
                                 "block.bn.weight", "block.bn.bias", "fc.weight", "fc.bias"));
  EXPECT_EQ(graph.parameter_count(), offset);
  EXPECT_EQ(graph.buffer_count(), 2 * (4 + 4));
  EXPECT_EQ(graph.buffers()[1].values_per_sample, 16);
}

TEST(Graph, TheRangesOfStemAndHeadMeetAtEveryCut) {
  const Graph graph = small_resnet();
  for (const Cut& cut : graph.cuts()) {
    const Segment stem{0, cut.layers}, head{cut.layers, graph.size()};
    EXPECT_EQ(graph.parameter_range(stem).offset, 0);
    EXPECT_EQ(graph.parameter_range(stem).end(), graph.parameter_range(head).offset) << cut.name;
    EXPECT_EQ(graph.parameter_range(head).end(), graph.parameter_count()) << cut.name;
    EXPECT_EQ(graph.buffer_range(stem).end(), graph.buffer_range(head).offset) << cut.name;
    EXPECT_EQ(graph.multiply_adds(stem) + graph.multiply_adds(head),
              graph.multiply_adds(graph.whole()));
  }
}

TEST(Graph, IsCutOnlyWhereOneTensorCrossesAndNoFusedGroupIsSplit) {
  EXPECT_THAT(cut_names(small_resnet()),
              ElementsAre("Input", "relu", "block.relu", "pool", "flatten"));
}

TEST(Graph, ACutIsFoundByItsLayerItsStageOrItsPosition) {
  const Graph graph = small_resnet();
  EXPECT_EQ(graph.cut("Input").layers, 0);
  EXPECT_EQ(graph.cut("Input").shape, (Shape{8, 8, 3}));
  EXPECT_EQ(graph.cut("relu").layers, 4);
  EXPECT_EQ(graph.cut("block").layers, 8);
  EXPECT_EQ(graph.cut("block.relu").layers, 8);
  EXPECT_EQ(graph.cut_at(9).name, "pool");
}

TEST(Graph, AnImpossibleCutIsRefusedWithAllPossibleOnes) {
  const Graph graph = small_resnet();
  EXPECT_THAT([&] { graph.cut("block.bn"); },
              ThrowsMessage<InvalidInput>(
                  AllOf(HasSubstr("block.bn"), HasSubstr("Input, relu, block.relu, pool"))));
  EXPECT_THAT([&] { graph.cut("fc"); },
              ThrowsMessage<InvalidInput>(HasSubstr("it is the last layer, behind which nothing")));
  EXPECT_THAT([&] { graph.cut("blo"); }, ThrowsMessage<InvalidInput>(HasSubstr("no such layer")));
  EXPECT_THAT([&] { graph.cut("blok"); },
              ThrowsMessage<InvalidInput>(HasSubstr("did you mean \"block\"?")));
  EXPECT_THAT([&] { graph.cut("block.bn"); },
              ThrowsMessage<InvalidInput>(
                  HasSubstr("the nearest that works is \"relu\" before it, or \"block.relu\"")));
  EXPECT_THAT([&] { graph.cut_at(3); }, ThrowsMessage<InvalidInput>(HasSubstr("behind 3 layers")));
}

TEST(Graph, CountsMultiplyAddsOfConvolutionsAndLinearLayers) {
  EXPECT_EQ(small_resnet().multiply_adds(small_resnet().whole()),
            4 * 4 * (4 * 3 * 9) + 4 * 4 * (4 * 4 * 9) + 16 * 5);
}

TEST(Graph, FreezesEverythingUpToALayerOrAStage) {
  const Graph graph = small_resnet("block");
  for (const Parameter& parameter : graph.parameters()) {
    EXPECT_EQ(parameter.trainable, parameter.name.starts_with("fc")) << parameter.name;
  }
  EXPECT_TRUE(graph.frozen_before(graph.cut("block").layers));
  EXPECT_FALSE(graph.frozen_before(graph.size()));
  EXPECT_FALSE(small_resnet().frozen_before(small_resnet().cut("relu").layers));
  EXPECT_THAT([] { small_resnet("layer9"); }, ThrowsMessage<InvalidInput>(HasSubstr("layer9")));
}

TEST(Graph, TheEmbeddingIsWhatEntersTheLastLayerWithWeights) {
  const Graph graph = small_resnet();
  EXPECT_EQ(graph.layers()[static_cast<size_t>(graph.embedding_layer())].name, "flatten");
}

TEST(Graph, TheEmbeddingOfAFullyConvolutionalNetworkEntersItsLastGroup) {
  const auto embedding_of = [](bool with_stem) {
    GraphBuilder builder = start();
    if (with_stem) builder.add("stem", Convolution{.out_channels = 4, .kernel = 3});
    if (with_stem) builder.add("stem.relu", Relu{});
    builder.add("conv", Convolution{.out_channels = 5, .kernel = 3});
    builder.add("bn", BatchNorm{});
    builder.add("relu", Relu{});
    builder.add("pool", GlobalAveragePool{});
    const Graph graph = builder.build();
    return graph.layers()[static_cast<size_t>(graph.embedding_layer())].name;
  };
  EXPECT_EQ(embedding_of(true), "stem.relu") << "between conv and bn nothing can be cut";
  EXPECT_EQ(embedding_of(false), "pool") << "nothing can be cut before conv";
}

TEST(Graph, WithoutItsLastLayerHasTheOthersWhereTheyWere) {
  GraphBuilder builder("faces", {8, 8, 3});
  builder.add("normalize", Normalize{{0, 0, 0}, {1, 1, 1}});
  builder.add("conv1", Convolution{.out_channels = 4, .kernel = 3});
  builder.add("bn1", BatchNorm{});
  builder.add("flatten", Flatten{});
  builder.add("fc", Linear{.out_features = 5});
  builder.add("head", ArcFace{7, 0.5f, 64});
  builder.freeze_until("bn1");
  const Graph whole = builder.build();
  const Graph rest = without_last_layer(whole);
  ASSERT_EQ(rest.size(), whole.size() - 1);
  EXPECT_EQ(rest.parameter_count(), whole.parameter_range({0, whole.size() - 1}).size);
  EXPECT_EQ(rest.buffer_count(), whole.buffer_count());
  for (size_t i = 0; i < rest.parameters().size(); ++i) {
    EXPECT_EQ(rest.parameters()[i].range.offset, whole.parameters()[i].range.offset);
    EXPECT_EQ(rest.parameters()[i].trainable, whole.parameters()[i].trainable);
  }
  EXPECT_FALSE(rest.parameters().front().trainable);
  EXPECT_TRUE(rest.parameters().back().trainable);
}

TEST(Graph, OfFrozenLayersUpToAHeadMayLoseTheHead) {
  GraphBuilder builder = start();
  builder.add("flatten", Flatten{});
  builder.add("fc", Linear{.out_features = 5});
  builder.add("head", ArcFace{7, 0.5f, 64});
  builder.freeze_until("fc");
  const Graph rest = without_last_layer(builder.build());
  EXPECT_TRUE(rest.layers().back().frozen);
  EXPECT_FALSE(rest.parameters().back().trainable);
}

TEST(GraphBuilder, RefusesToFreezeAllThatCouldBeTrained) {
  EXPECT_THAT([] { small_resnet("fc"); },
              ThrowsMessage<InvalidInput>(
                  AllOf(HasSubstr("until \"fc\": nothing would be left to train"),
                        HasSubstr("the last layer that leaves something is flatten"))));
  EXPECT_TRUE(small_resnet("flatten").parameters().back().trainable);
}

TEST(GraphBuilder, RefusesWhatDoesNotFitAndNamesTheLayer) {
  const auto refuses = [](Operation operation, const std::string& part) {
    GraphBuilder builder = start();
    EXPECT_THAT([&] { builder.add("odd", operation); },
                ThrowsMessage<InvalidInput>(AllOf(HasSubstr("\"odd\""), HasSubstr(part))));
  };
  refuses(Convolution{.out_channels = 4, .kernel = 9}, "too small");
  refuses(Convolution{.out_channels = 4, .kernel = 3, .groups = 2}, "groups");
  refuses(Convolution{.out_channels = 0}, "output channel");
  refuses(Convolution{.out_channels = 4, .kernel = 3, .stride = 0}, "stride");
  refuses(MaxPool{.kernel = 2, .stride = 2, .padding = 2}, "padding");
  refuses(Linear{5}, "{features}");
  refuses(Dropout{1.0f}, "probability");
  refuses(Add{}, "two inputs");
  refuses(ArcFace{10}, "{features}");
  refuses(Normalize{}, "first layer");
}

TEST(GraphBuilder, RefusesALayerWhoseOutputNobodyReads) {
  GraphBuilder builder = start();
  builder.add("lost", Relu{}, {0});
  builder.add("last", Relu{}, {0});
  EXPECT_THAT([&] { builder.build(); }, ThrowsMessage<InvalidInput>(HasSubstr("\"lost\"")));
}

TEST(GraphBuilder, RefusesANameTwice) {
  GraphBuilder builder = start();
  EXPECT_THAT([&] { builder.add("normalize", Relu{}); },
              ThrowsMessage<InvalidInput>(HasSubstr("taken")));
}

}  // namespace
}  // namespace outrigger::nn
