#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "common/file.h"
#include "common/random.h"
#include "nn/models.h"
#include "nn/reference/backend.h"
#include "nn/safetensors.h"
#include "nn/weights_file.h"

// Weights go to PyTorch's own models, strict=True, and back.
namespace outrigger::nn {
namespace {

constexpr int64_t kSide = 32, kSamples = 1;

struct Model {
  Graph graph;
  std::vector<float> parameters, buffers;
};

// Without a head: what insightface's and torchvision's backbones are. Running averages are not the
// initial ones, so that a mean taken for a variance would show.
Model make(const std::string& name) {
  ModelOptions options;
  options.name = name;
  options.height = options.width = kSide;
  options.head = HeadKind::kNone;
  Model model{build_model(options), {}, {}};
  model.parameters.resize(static_cast<size_t>(model.graph.parameter_count()));
  model.buffers.resize(static_cast<size_t>(model.graph.buffer_count()));
  initialize(model.graph, 5, model.parameters, model.buffers);
  for (size_t i = 0; i < model.buffers.size(); ++i)
    model.buffers[i] += 0.25f * static_cast<float>(i % 3);
  return model;
}

std::vector<uint8_t> write_pixels(const std::filesystem::path& path) {
  std::vector<uint8_t> pixels(static_cast<size_t>(kSamples * kSide * kSide * 3));
  RandomStream random(1, RandomUse::kSyntheticData, 0);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random.below(256));
  SafetensorsWriter writer(path, {{"pixels", ElementType::kUint8, {kSamples, kSide, kSide, 3}}},
                           {});
  writer.write(std::as_bytes(std::span(pixels)));
  writer.finish();
  return pixels;
}

std::vector<float> infer(const Model& model, const std::vector<uint8_t>& pixels) {
  ThreadPool threads(1);
  const auto program = make_reference_backend()->compile(
      model.graph, {model.graph.whole(), kSamples, Precision::kFloat32, Mode::kInference}, threads);
  const auto weights = program->new_weights();
  const auto tape = program->new_tape();
  program->load(*weights, model.parameters, model.buffers);
  Tensor output(ElementType::kFloat32, program->output_spec().shape);
  const ConstTensorView input{ElementType::kUint8, program->input_spec().shape,
                              reinterpret_cast<const std::byte*>(pixels.data())};
  program->forward(*weights, *tape, {input, kSamples, {}, {}}, {output.view(), {}});
  return {output.as<float>().begin(), output.as<float>().end()};
}

TEST(TorchWeights, EveryModelLoadsInPyTorchWithStrictAndComesBack) {
  const std::filesystem::path source = OUTRIGGER_SOURCE_DIR;
  const std::filesystem::path python = source / ".deps/pytorch/bin/python";
  if (!std::filesystem::exists(source / ".deps/pytorch/installed.txt"))  // which comes last
    GTEST_SKIP() << "no PyTorch in .deps/pytorch: run tools/setup pytorch";

  const TemporaryDirectory folder;
  const auto path = [&](const std::string& name) { return folder.path() / name; };
  const std::vector<uint8_t> pixels = write_pixels(path("pixels.safetensors"));
  for (const std::string& name : model_names()) {
    const Model model = make(name);
    save_weights(path(name + ".safetensors"), model.graph, model.graph.whole(),
                 {model.parameters, model.buffers, 3});
  }
  const std::string command = python.string() + " " +
                              (source / "tests/integration/nn/load_weights.py").string() + " " +
                              folder.path().string() + " " + std::to_string(kSide);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;

  for (const std::string& name : model_names()) {
    const Model model = make(name);
    const SafetensorsReader reader(path(name + ".output"));
    const std::vector<float> expected = reader.read(*reader.find("output"));
    const std::vector<float> actual = infer(model, pixels);
    ASSERT_EQ(actual.size(), expected.size()) << name;
    double scale = 0, difference = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      scale = std::max(scale, std::abs(double{expected[i]}));
      difference = std::max(difference, std::abs(double{expected[i]} - actual[i]));
    }
    // Some fifty layers of float32 sums, each of up to 5000 terms.
    EXPECT_LE(difference, 50 * std::sqrt(5000.0) * 0x1p-23 * scale) << name;

    Model back = make(name);
    const LoadedWeights loaded =
        load_weights(path(name + ".torch"), back.graph, {}, back.parameters, back.buffers);
    EXPECT_EQ(loaded.batches_tracked, model.buffers.empty() ? 0 : 3) << name;
    EXPECT_EQ(back.buffers, model.buffers) << name;
    size_t halved = 0;
    for (size_t i = 0; i < back.parameters.size(); ++i)
      halved += back.parameters[i] == model.parameters[i] / 2 ? 1 : 0;
    EXPECT_EQ(halved, back.parameters.size()) << name;
  }
}

}  // namespace
}  // namespace outrigger::nn
