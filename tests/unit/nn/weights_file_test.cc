#include "nn/weights_file.h"

#include <gmock/gmock.h>

#include <cmath>

#include "common/error.h"
#include "common/file.h"
#include "nn/models.h"
#include "nn/safetensors.h"

namespace outrigger::nn {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

struct Model {
  Graph graph;
  std::vector<float> parameters, buffers;
};

Model make(const std::string& name, HeadKind head, int64_t classes = 4, uint64_t seed = 1) {
  ModelOptions options;
  options.name = name;
  options.height = options.width = 16;
  options.classes = classes;
  options.head = head;
  if (name != "lenet5" && name != "resnet18") options.embedding = 8;
  Model model{build_model(options), {}, {}};
  model.parameters.resize(static_cast<size_t>(model.graph.parameter_count()));
  model.buffers.resize(static_cast<size_t>(model.graph.buffer_count()));
  initialize(model.graph, seed, model.parameters, model.buffers);
  return model;
}

class WeightsFile : public ::testing::Test {
 protected:
  void save(const Model& model, Segment segment) {
    save_weights(path_, model.graph, segment, {model.parameters, model.buffers, 17},
                 {{"step", "3"}});
  }
  LoadedWeights load(Model& model, bool replace_head = false) {
    return load_weights(path_, model.graph, {replace_head}, model.parameters, model.buffers);
  }

  TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_.path() / "model.safetensors";
};

TEST_F(WeightsFile, BringsEveryNumberBack) {
  const Model saved = make("mobilefacenet", HeadKind::kLinear);
  save(saved, saved.graph.whole());
  Model loaded = make("mobilefacenet", HeadKind::kLinear, 4, 2);
  const LoadedWeights report = load(loaded);
  EXPECT_EQ(loaded.parameters, saved.parameters);
  EXPECT_EQ(loaded.buffers, saved.buffers);
  EXPECT_EQ(report.batches_tracked, 17);
  EXPECT_TRUE(report.skipped.empty());
}

TEST_F(WeightsFile, HoldsWhatPyTorchExpectsOfANorm) {
  const Model saved = make("mobilefacenet", HeadKind::kLinear);
  save(saved, saved.graph.whole());
  const SafetensorsReader reader(path_);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.metadata().at("step"), "3");
  EXPECT_EQ(reader.find("layers.0.layers.1.running_var")->shape, Shape{128});
  EXPECT_EQ(reader.find("layers.0.layers.1.num_batches_tracked")->type, "I64");
  EXPECT_EQ(reader.find("layers.0.layers.1.num_batches_tracked")->shape, Shape{});
  EXPECT_EQ(reader.find("layers.1.layers.0.weight")->shape, (Shape{128, 2, 3, 3}));
}

TEST_F(WeightsFile, ABackboneIsSavedWithoutItsHeadAndLoadsUnderAnotherHead) {
  const Model saved = make("mobilefacenet", HeadKind::kArcFace);
  save(saved, backbone(saved.graph));
  EXPECT_EQ(SafetensorsReader(path_).find("head.weight"), nullptr);
  Model bare = make("mobilefacenet", HeadKind::kNone, 0, 2);
  load(bare);
  Model with_head = make("mobilefacenet", HeadKind::kLinear, 9, 2);
  const std::vector<float> head(with_head.parameters.end() - 9 * (8 + 1),
                                with_head.parameters.end());
  load(with_head, true);
  EXPECT_TRUE(std::equal(bare.parameters.begin(), bare.parameters.end(), saved.parameters.begin()));
  EXPECT_TRUE(
      std::equal(bare.parameters.begin(), bare.parameters.end(), with_head.parameters.begin()));
  EXPECT_TRUE(std::equal(head.begin(), head.end(), with_head.parameters.end() - 9 * (8 + 1)));
}

TEST_F(WeightsFile, AReplacedHeadKeepsItsInitialNumbersWhateverTheFileHas) {
  const Model saved = make("lenet5", HeadKind::kLinear, 10);
  save(saved, saved.graph.whole());
  Model other = make("lenet5", HeadKind::kLinear, 3, 2);
  EXPECT_THAT([&] { load(other); },
              ThrowsMessage<InvalidInput>(AllOf(HasSubstr("fc3.weight"), HasSubstr("{10, 84}"),
                                                HasSubstr("{3, 84}"), HasSubstr("replaceHead"))));
  const LoadedWeights report = load(other, true);
  EXPECT_THAT(report.skipped, UnorderedElementsAre("fc3.weight", "fc3.bias"));
  EXPECT_EQ(other.parameters[0], saved.parameters[0]);
  EXPECT_EQ(other.parameters.back(), make("lenet5", HeadKind::kLinear, 3, 2).parameters.back());
  Model headless = make("lenet5", HeadKind::kNone);
  EXPECT_THAT(load(headless, true).skipped, Contains("fc3.bias"));
}

TEST_F(WeightsFile, MissingAndUnexpectedTensorsAreNamed) {
  const Model saved = make("lenet5", HeadKind::kNone);
  save(saved, saved.graph.whole());
  Model other = make("lenet5", HeadKind::kArcFace);
  EXPECT_THAT(
      [&] { load(other); },
      ThrowsMessage<InvalidInput>(AllOf(
          HasSubstr(path_.string()), HasSubstr("missing: head.weight"), HasSubstr("replaceHead"))));
  Model resnet = make("resnet18", HeadKind::kLinear);
  EXPECT_THAT([&] { load(resnet); }, ThrowsMessage<InvalidInput>(AllOf(
                                         HasSubstr("not the weights of resnet18"),
                                         HasSubstr("more"), HasSubstr("not in the model: "),
                                         HasSubstr("fc1.weight"), Not(HasSubstr("replaceHead")))));
}

TEST_F(WeightsFile, ATensorOfAnotherShapeIsRefusedWithBothShapes) {
  ModelOptions options;
  options.name = "lenet5";
  options.height = options.width = 16;
  options.classes = 4;
  options.channels = 1;
  const Graph grey = build_model(options);
  const std::vector<float> parameters(static_cast<size_t>(grey.parameter_count()));
  save_weights(path_, grey, grey.whole(), {parameters, {}, 0});
  Model colour = make("lenet5", HeadKind::kLinear);
  EXPECT_THAT([&] { load(colour); }, ThrowsMessage<InvalidInput>(AllOf(
                                         HasSubstr("\"conv1.weight\""), HasSubstr("{6, 1, 5, 5}"),
                                         HasSubstr("{6, 3, 5, 5}"))));
}

TEST_F(WeightsFile, ANumberThatIsNotFiniteIsRefused) {
  Model saved = make("lenet5", HeadKind::kLinear);
  saved.parameters[3] = NAN;
  save(saved, saved.graph.whole());
  Model loaded = make("lenet5", HeadKind::kLinear);
  EXPECT_THAT([&] { load(loaded); },
              ThrowsMessage<InvalidInput>(
                  AllOf(HasSubstr("conv1.weight"), HasSubstr("nan"), HasSubstr("element 3"))));
}

}  // namespace
}  // namespace outrigger::nn
