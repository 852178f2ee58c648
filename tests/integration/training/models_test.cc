#include <gtest/gtest.h>

#include <string>

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

TEST(Resnet18, AnyCutShareAndNumberOfWorkersGivesBitwiseTheSameWeights) {
  JobText job{.share = 100, .steps = 3, .batch = 8, .micro_batch = 2, .model = " {name: resnet18}"};
  const auto truth = train(job, 0);
  struct Case {
    const char* cut;
    int share;
    int workers;
  };
  for (const Case& one :
       {Case{"layer2.0.relu2", 100, 0}, Case{"maxpool", 50, 1}, Case{"layer1", 100, 2},
        Case{"layer2.0.relu2", 75, 3}, Case{"layer4.0.relu2", 100, 4}}) {
    job.cut = one.cut;
    job.share = one.share;
    expect_same_run(*train(job, one.workers), *truth,
                    std::string(one.cut) + " with " + std::to_string(one.workers) + " workers");
  }
}

}  // namespace
}  // namespace outrigger::integration
