#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/training/training_run.h"

/// A run that starts from another run's weights: head replaced, first layers frozen.
namespace outrigger::integration {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// spec.model of the small net with more said about it.
std::string model(const std::string& more, int classes = 12) {
  std::string net = small_net();
  const std::string features = "features: 12";
  net.replace(net.find(features), features.size(), "features: " + std::to_string(classes));
  return more + net;
}

const fs::path& weights() {
  static const std::unique_ptr<TrainingRun> run = train({.steps = 8}, 1);
  static const fs::path file = run->directory() / "weights.safetensors";
  return file;
}

std::string from_weights() { return "\n    weights: " + weights().string(); }

JobText frozen(const std::string& cut) {
  return {.cut = cut,
          .share = 100,
          .steps = 8,
          .model = model(from_weights() + "\n    freezeUntil: relu2"),
          .seed = "4"};
}

TEST(FineTuning, ARunFromWeightsStartsWhereTheyEnded) {
  const auto run = train({.steps = 1, .model = model(from_weights()), .rate = "0.000000001"}, 0);
  const auto before = tensors(weights());
  const auto after = tensors(run->directory() / "weights.safetensors");
  for (const char* name : {"conv1.weight", "conv3.weight", "classifier.weight"}) {
    ASSERT_EQ(before.at(name).size(), after.at(name).size());
    for (size_t i = 0; i < before.at(name).size(); ++i)
      ASSERT_NEAR(before.at(name)[i], after.at(name)[i], 1e-6) << name << " at " << i;
  }
}

TEST(FineTuning, FrozenLayersKeepEveryBitAndTheOthersLearn) {
  const auto run = train(frozen("relu2"), 2);
  const auto before = tensors(weights());
  const auto after = tensors(run->directory() / "weights.safetensors");
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, values] : before) {
    const bool is_frozen =
        name.find("1.") != std::string::npos || name.find("2.") != std::string::npos;
    EXPECT_EQ(values == after.at(name), is_frozen) << name;
  }
}

TEST(FineTuning, AFrozenStemRunsOnWorkersBitwiseAsOnTheServer) {
  const auto truth = train(frozen("Input"), 0);
  expect_same_run(*train(frozen("relu2"), 3), *truth, "cut where the frozen layers end");
  expect_same_run(*train(frozen("relu1"), 2), *truth, "cut within the frozen layers");
  expect_same_run(*train(frozen("relu3"), 2), *truth, "cut behind trained layers");
  TrainingRun killed(frozen("relu2"));
  killed.start_server();
  killed.start_worker({.fault = "sent-micro-batch:2:KILL"});
  killed.start_worker({.fault = "got-weights:1:KILL"});
  EXPECT_EQ(killed.wait_for_server(), 0);
  expect_same_run(killed, *truth, "workers killed");
}

/// Six of the twelve people.
struct SixPeople {
  SixPeople() {
    fs::copy(faces(), folder.path() / "faces", fs::copy_options::recursive);
    for (int person = 6; person < 12; ++person) {
      char name[8] = {};
      std::snprintf(name, sizeof name, "%04d", person);
      removed += fs::remove_all(folder.path() / "faces" / "train" / name) > 0 ? 1 : 0;
    }
  }
  TemporaryDirectory folder{"outrigger-six"};
  int removed = 0;
};

TEST(FineTuning, AReplacedHeadServesOtherPeople) {
  const SixPeople six;
  ASSERT_EQ(six.removed, 6);
  const JobText refused{.model = model(from_weights(), 6), .data = six.folder.path() / "faces"};
  TrainingRun without(refused);
  without.start_server();
  EXPECT_EQ(without.wait_for_server(), 10);
  EXPECT_THAT(
      without.server_log(),
      HasSubstr("tensor \"classifier.weight\" has shape {12, 16}, and layers needs {6, 16}"));
  EXPECT_THAT(without.server_log(), HasSubstr("replaceHead"));

  JobText job = refused;
  job.cut = "relu2";
  job.model = model(from_weights() + "\n    replaceHead: true\n    freezeUntil: relu3", 6);
  const auto run = train(job, 2);
  const auto after = tensors(run->directory() / "weights.safetensors");
  EXPECT_EQ(after.at("conv3.weight"), tensors(weights()).at("conv3.weight"));
  EXPECT_EQ(after.at("classifier.bias").size(), 6u);
}

TEST(FineTuning, WeightsOfAnotherShapeAreRefusedWithNameAndShapes) {
  std::string wider = model(from_weights());
  const std::string channels = "name: conv2, convolution: {channels: 16";
  wider.replace(wider.find(channels), channels.size(), "name: conv2, convolution: {channels: 24");
  const std::string third = "name: conv3, convolution: {channels: 16";
  wider.replace(wider.find(third), third.size(), "name: conv3, convolution: {channels: 24");
  TrainingRun run({.model = wider});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  EXPECT_THAT(run.server_log(),
              HasSubstr(weights().string() + ": tensor \"conv2.weight\" has shape "
                                             "{16, 8, 3, 3}"));
  EXPECT_THAT(run.server_log(), HasSubstr("{24, 8, 3, 3}"));
}

TEST(FineTuning, WeightsThatAreNotThereOrOfAnotherNetAreNamed) {
  TrainingRun missing({.model = model("\n    weights: nowhere.safetensors")});
  missing.start_server();
  EXPECT_NE(missing.wait_for_server(), 0);
  EXPECT_THAT(missing.server_log(), HasSubstr("nowhere.safetensors"));
  TrainingRun other({.model = " {name: lenet5, weights: " + weights().string() + "}"});
  other.start_server();
  EXPECT_EQ(other.wait_for_server(), 10);
  EXPECT_THAT(other.server_log(), HasSubstr("these are not the weights of lenet5"));
}

}  // namespace
}  // namespace outrigger::integration
