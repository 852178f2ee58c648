#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

#include "nn/graph_builder.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/reference/backend.h"
#include "nn/safetensors.h"
#include "op_cases.h"

// Against numbers that PyTorch made (tools/make_fixtures.py), each with the tolerance that is
// stored beside it.
namespace outrigger::nn::testing {
namespace {

const SafetensorsReader& fixture(const std::string& name) {
  const std::string folder = std::string(OUTRIGGER_SOURCE_DIR) + "/tests/unit/nn/fixtures/";
  static const SafetensorsReader operations(folder + "operations.safetensors"),
      losses(folder + "losses.safetensors");
  return name == "operations" ? operations : losses;
}

const StoredTensor& stored(const SafetensorsReader& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) {
    throw std::runtime_error(file.path().string() + " has no " + name +
                             "; run tools/make_fixtures.py");
  }
  return *tensor;
}

std::vector<float> floats(const SafetensorsReader& file, const std::string& name) {
  return file.read(stored(file, name));
}

std::vector<int32_t> integers(const SafetensorsReader& file, const std::string& name) {
  const std::vector<int64_t> values = file.read_integers(stored(file, name));
  return {values.begin(), values.end()};
}

void expect_as_stored(const SafetensorsReader& file, const std::string& name,
                      const std::vector<float>& actual) {
  const std::vector<float> expected = floats(file, name);
  ASSERT_EQ(actual.size(), expected.size()) << name;
  const float tolerance = floats(file, name + ".tolerance").at(0);
  float worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const float difference = std::abs(actual[i] - expected[i]);
    ASSERT_FALSE(std::isnan(difference)) << name << " at " << i;
    worst = std::max(worst, difference);
  }
  EXPECT_LE(worst, tolerance) << name;
}

class TorchFixture : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchFixture, TheReferenceComputesWhatPyTorchDoes) {
  const OpCase& op_case = GetParam();
  const SafetensorsReader& file = fixture("operations");
  const std::string name = op_case.name + "/";
  OpValues values;
  values.input = floats(file, name + "input");
  values.parameters = floats(file, name + "parameters");
  values.buffers = floats(file, name + "buffers");
  values.output_gradient = floats(file, name + "output_gradient");
  values.labels = integers(file, name + "labels");
  values.slots.resize(static_cast<size_t>(op_case.batch));
  ASSERT_EQ(values.parameters.size(), static_cast<size_t>(op_case.graph->parameter_count()));

  ThreadPool threads(1);
  const OpResult result = run_case(*make_reference_backend(), threads, op_case, values);
  expect_as_stored(file, name + "output", result.output);
  expect_as_stored(file, name + "statistics", result.statistics);
  expect_as_stored(file, name + "input_gradient", result.input_gradient);
  expect_as_stored(file, name + "gradients", result.gradients);
  expect_as_stored(file, name + "inference", result.inference);
}

std::vector<OpCase> torch_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& op_case : op_cases()) {
    if (op_case.torch) cases.push_back(op_case);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Operations, TorchFixture, ::testing::ValuesIn(torch_cases()),
                         [](const auto& row) { return test_name(row.param); });

TEST(TorchLoss, SoftmaxCrossEntropyAndItsGradientAreAsPyTorchs) {
  const SafetensorsReader& file = fixture("losses");
  const std::vector<float> logits = floats(file, "logits");
  const std::vector<int32_t> labels = integers(file, "labels");
  for (const float smoothing : {0.0f, 0.1f}) {
    const std::string name = smoothing == 0 ? "smoothing 0.0" : "smoothing 0.1";
    std::vector<float> gradient(logits.size());
    const LossResult result = softmax_cross_entropy(
        {ElementType::kFloat32, {6, 11}, reinterpret_cast<const std::byte*>(logits.data())}, labels,
        smoothing, {ElementType::kFloat32, {6, 11}, reinterpret_cast<std::byte*>(gradient.data())});
    expect_as_stored(file, name + "/loss", {static_cast<float>(result.loss_sum)});
    expect_as_stored(file, name + "/gradient", gradient);
  }
}

TEST(TorchSgd, StepsAreAsPyTorchs) {
  GraphBuilder builder("net", {1, 1, 30});
  builder.add("normalize", Normalize{std::vector<float>(30, 0), std::vector<float>(30, 1)});
  builder.add("flatten", Flatten{});
  builder.add("fc", Linear{1, false});
  const Graph graph = builder.build();
  const SafetensorsReader& file = fixture("losses");
  const std::vector<float> gradients = floats(file, "sgd/gradients");
  const std::pair<std::string, SgdOptions> variants[] = {
      {"plain", {}},
      {"momentum", {.momentum = 0.9f, .weight_decay = 5e-4f}},
      {"nesterov", {.momentum = 0.9f, .nesterov = true, .weight_decay = 5e-2f}}};
  for (const auto& [name, options] : variants) {
    std::vector<float> parameters = floats(file, "sgd/start"), momentum(30);
    for (size_t step = 0; step < 3; ++step) {
      sgd_step(graph, options, 0.1f, std::span(gradients).subspan(step * 30, 30), momentum,
               parameters);
    }
    expect_as_stored(file, "sgd/" + name, parameters);
  }
}

}  // namespace
}  // namespace outrigger::nn::testing
