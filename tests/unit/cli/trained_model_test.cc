#include "cli/trained_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/parse.h"
#include "api/write.h"
#include "common/error.h"
#include "tests/unit/cli/model_fixture.h"
#include "tests/unit/cli/run_command.h"
#include "worker/job.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;
using TrainedModelTest = ModelTest;

TEST_F(TrainedModelTest, NeedsNothingButTheFile) {
  write_weights(path("w.safetensors"));
  const TrainedModel model = load_trained_model(path("w.safetensors"), {});
  EXPECT_EQ(model.graph.name(), "lenet5");
  EXPECT_EQ(model.graph.input(), (Shape{32, 32, 1}));
  EXPECT_TRUE(model.has_head());
  EXPECT_EQ(model.card.classes[2], "eve");
}

TEST_F(TrainedModelTest, IsFoundInARunACheckpointAndAmongCheckpoints) {
  write_weights(path("run/weights.safetensors"));
  EXPECT_EQ(find_weights(path("run")), path("run/weights.safetensors"));
  write_weights(path("run/averaged.safetensors"));
  EXPECT_EQ(find_weights(path("run")), path("run/averaged.safetensors"));

  for (const char* step : {"step-9", "step-10", "step-11", "step-99-old"}) {
    write_weights(path("steps") / step / "weights.safetensors");
    std::ofstream(path("steps") / step / "state.json") << "{}";
  }
  std::filesystem::remove(path("steps/step-11/state.json"));  // was not finished
  EXPECT_EQ(find_weights(path("steps")), path("steps/step-10/weights.safetensors"));
  write_weights(path("steps/best/weights.safetensors"));
  EXPECT_EQ(find_weights(path("steps")), path("steps/best/weights.safetensors"));
}

TEST_F(TrainedModelTest, IsMissedByWhatWasLookedFor) {
  EXPECT_THAT(refusal_of([&] { find_weights(path("absent")); }),
              HasSubstr("absent: there is no such"));
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(refusal_of([&] { find_weights(path("empty")); }), HasSubstr("holds no weights"));
}

TEST_F(TrainedModelTest, OfOthersIsNamedByTheUserAndEndsWithTheEmbedding) {
  write_weights(path("torch.safetensors"), false);
  EXPECT_THAT(refusal_of([&] { load_trained_model(path("torch.safetensors"), {}); }),
              HasSubstr("--model"));
  ModelHints hints;
  hints.name = "lenet5";
  hints.height = 32;
  hints.width = 32;
  hints.channels = 1;
  const TrainedModel model = load_trained_model(path("torch.safetensors"), hints);
  EXPECT_FALSE(model.has_head());
  EXPECT_EQ(model.graph.embedding_layer() + 1, model.graph.size());
}

TEST_F(TrainedModelTest, OfLayersIsBuiltFromTheJobInTheFile) {
  const char* yaml = R"(
apiVersion: outrigger.dev/v1alpha1
kind: TrainingJob
metadata: {name: own}
spec:
  model:
    layers:
      - {name: conv1, convolution: {channels: 4, kernel: 3}}
      - {name: relu1, relu: {}}
      - {name: pool, globalAveragePool: {}}
      - {name: flat, flatten: {}}
      - {name: out, linear: {features: 3}}
  data:
    train: {path: /data, format: ImageFolder}
    image: {height: 16, width: 16, channels: 1}
  training:
    epochs: 1
    batchSize: 4
    loss: {softmaxCrossEntropy: {}}
    optimizer: {sgd: {}}
    schedule: {constant: {base: 0.1}}
  split: {cut: Input, sharePercent: 100}
  output: {path: runs}
)";
  const api::ParseResult job = api::resolve_training_job(yaml);
  ASSERT_EQ(api::to_string(job.errors), "");
  const nn::Graph graph = worker::build_graph(job.job, 3);
  const std::vector<float> parameters(static_cast<size_t>(graph.parameter_count()), 0.5f);
  training::ModelCard card;
  card.job = api::to_json_text(job.job);
  card.model.height = 16;
  card.model.width = 16;
  card.model.channels = 1;
  card.model.classes = 3;
  nn::save_weights(path("own.safetensors"), graph, graph.whole(),
                   {.parameters = parameters, .buffers = {}}, training::to_metadata(card, graph));
  const TrainedModel model = load_trained_model(path("own.safetensors"), {});
  EXPECT_EQ(model.graph.size(), graph.size());
  EXPECT_EQ(model.parameters, parameters);
  EXPECT_TRUE(model.has_head());
}

TEST_F(TrainedModelTest, RefusesAModelThatTheFileContradicts) {
  write_weights(path("w.safetensors"));
  ModelHints hints;
  hints.name = "resnet18";
  EXPECT_THAT(refusal_of([&] { load_trained_model(path("w.safetensors"), hints); }),
              HasSubstr("is of model lenet5, not of resnet18"));
}

}  // namespace
}  // namespace outrigger::cli
