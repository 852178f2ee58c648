#include <gtest/gtest.h>

#include "tests/integration/training/training_run.h"

/// The large networks, a few real steps each: cut and run with workers as in one piece.
namespace outrigger::integration {
namespace {

struct Model {
  const char* name;
  const char* cut;
  const char* loss;
};

class Models : public testing::TestWithParam<Model> {};

TEST_P(Models, CutAndWithAWorkerAreBitwiseTheWholeNetwork) {
  JobText job{.share = 50,
              .steps = 2,
              .batch = 8,
              .micro_batch = 4,
              .model = std::string(" {name: ") + GetParam().name + "}",
              .loss = GetParam().loss};
  const auto truth = train(job, 0);
  job.cut = GetParam().cut;
  expect_same_run(*train(job, 1), *truth, GetParam().cut);
}

INSTANTIATE_TEST_SUITE_P(
    Large, Models,
    testing::Values(Model{"resnet50", "layer1.0.relu3", "{softmaxCrossEntropy: {}}"},
                    Model{"iresnet50", "layer1.0.add", "{arcFace: {margin: 0.5, scale: 64}}"},
                    Model{"mobilefacenet", "layers.0.layers.2",
                          "{arcFace: {margin: 0.3, scale: 32}}"}),
    [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace outrigger::integration
