#include "training_agreement.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/random.h"
#include "nn/loss.h"
#include "nn/models.h"
#include "nn/optimizer.h"
#include "nn/safetensors.h"

namespace outrigger::nn::testing {
namespace {

// As in tools/make_fixtures.py.
constexpr int64_t kSteps = 20, kBatch = 16, kMicroBatch = 8, kClasses = 8, kGrid = 4;
constexpr uint64_t kSeed = 7;
constexpr SgdOptions kSgd{.momentum = 0.9f, .weight_decay = 5e-4f};

float rate_of(const std::string& model) { return model == "lenet5" ? 0.01f : 2e-6f; }

int64_t side_of(const std::string& model) {
  if (model == "lenet5") return 28;
  return model == "resnet18" ? 32 : 16;
}

Graph build(const std::string& name) {
  ModelOptions options;
  options.name = name;
  options.height = options.width = side_of(name);
  options.classes = kClasses;
  if (name == "iresnet18") {
    options.head = HeadKind::kArcFace;
    options.embedding = 64;
    options.arcface_scale = 16;
  }
  return build_model(options);
}

template <typename T>
std::span<const T> micro_batch(const std::vector<T>& all, int64_t index) {
  const size_t size = all.size() / static_cast<size_t>(kBatch / kMicroBatch);
  return std::span(all).subspan(static_cast<size_t>(index) * size, size);
}

class Training {
 public:
  Training(const Backend& backend, const std::string& model)
      : graph_(build(model)),
        program_(backend.compile(
            graph_,
            {graph_.whole(), kMicroBatch, Precision::kFloat32, Mode::kTraining, false, kSeed},
            threads_)),
        weights_(program_->new_weights()),
        tape_(program_->new_tape()),
        parameters_(static_cast<size_t>(graph_.parameter_count())),
        momentum_(parameters_.size()),
        sum_(parameters_.size()),
        gradients_(parameters_.size()),
        buffers_(static_cast<size_t>(graph_.buffer_count())),
        statistics_(buffers_.size()) {
    initialize(graph_, kSeed, parameters_, buffers_);
  }

  // Returns the batch's mean loss.
  float step(uint64_t number);

  // Compares each tensor of the model with the file's norm and first numbers of it.
  void expect_state(const SafetensorsReader& file) const;

 private:
  void draw(uint64_t step);
  double run_micro_batch(int64_t index);

  ThreadPool threads_{1};
  const Graph graph_;
  const std::unique_ptr<Program> program_;
  const std::unique_ptr<Weights> weights_;
  const std::unique_ptr<Tape> tape_;
  std::vector<float> parameters_, momentum_, sum_, gradients_, buffers_, statistics_;
  std::vector<uint8_t> pixels_;
  std::vector<int32_t> labels_;
};

// Images of kGrid x kGrid random colours.
void Training::draw(uint64_t step) {
  RandomStream random(kSeed, RandomUse::kSyntheticData, step);
  std::vector<uint8_t> colours(static_cast<size_t>(kBatch * kGrid * kGrid * 3));
  for (uint8_t& colour : colours) colour = static_cast<uint8_t>(random.below(256));
  labels_.resize(static_cast<size_t>(kBatch));
  for (int32_t& label : labels_) label = static_cast<int32_t>(random.below(kClasses));
  const int64_t side = graph_.input()[0];
  pixels_.clear();
  for (int64_t n = 0; n < kBatch; ++n) {
    for (int64_t y = 0; y < side; ++y) {
      for (int64_t x = 0; x < side; ++x) {
        const int64_t cell = (n * kGrid + y * kGrid / side) * kGrid + x * kGrid / side;
        const auto first = colours.begin() + cell * 3;
        pixels_.insert(pixels_.end(), first, first + 3);
      }
    }
  }
}

double Training::run_micro_batch(int64_t index) {
  const auto pixels = micro_batch(pixels_, index);
  const auto labels = micro_batch(labels_, index);
  const std::vector<uint64_t> slots(static_cast<size_t>(kMicroBatch));
  Tensor logits(ElementType::kFloat32, program_->output_spec().shape);
  Tensor gradient(ElementType::kFloat32, program_->output_spec().shape);
  const ConstTensorView input{ElementType::kUint8, program_->input_spec().shape,
                              reinterpret_cast<const std::byte*>(pixels.data())};
  program_->load(*weights_, parameters_, buffers_);
  program_->forward(*weights_, *tape_, {input, kMicroBatch, slots, labels},
                    {logits.view(), statistics_});
  const LossResult loss = softmax_cross_entropy(logits.view(), labels, 0, gradient.view());
  program_->backward(*weights_, *tape_, gradient.view(), {{}, gradients_});
  for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += gradients_[i];
  update_running_averages(graph_, graph_.whole(), kMicroBatch, statistics_, buffers_);
  return loss.loss_sum;
}

float Training::step(uint64_t number) {
  draw(number);
  std::fill(sum_.begin(), sum_.end(), 0.0f);
  double loss = 0;
  for (int64_t i = 0; i < kBatch / kMicroBatch; ++i) loss += run_micro_batch(i);
  for (float& gradient : sum_) gradient /= static_cast<float>(kBatch);
  sgd_step(graph_, kSgd, rate_of(graph_.name()), sum_, momentum_, parameters_);
  return static_cast<float>(loss / static_cast<double>(kBatch));
}

void expect_near(const SafetensorsReader& file, const std::string& name,
                 std::span<const float> actual) {
  const std::vector<float> expected = file.read(*file.find(name));
  const float tolerance = file.read(*file.find(name + ".tolerance")).at(0);
  ASSERT_EQ(actual.size(), expected.size()) << name;
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << name << " at " << i;
}

void expect_tensor(const SafetensorsReader& file, const std::string& name,
                   std::span<const float> values) {
  ASSERT_NE(file.find(name + "/norm"), nullptr) << name;
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  const auto norm = static_cast<float>(std::sqrt(squares));
  expect_near(file, name + "/norm", {&norm, 1});
  expect_near(file, name + "/first", values.first(std::min<size_t>(values.size(), 16)));
}

void Training::expect_state(const SafetensorsReader& file) const {
  for (const Parameter& parameter : graph_.parameters()) {
    expect_tensor(file, parameter.name, part_of(std::span(parameters_), parameter.range));
  }
  for (const NormBuffer& buffer : graph_.buffers()) {
    const auto channels = static_cast<size_t>(buffer.channels);
    const auto both = part_of(std::span(buffers_), buffer.range);
    expect_tensor(file, buffer.name + ".running_mean", both.first(channels));
    expect_tensor(file, buffer.name + ".running_var", both.last(channels));
  }
}

}  // namespace

void expect_training_as_pytorchs(const Backend& backend, const std::string& model) {
  const SafetensorsReader file(std::string(OUTRIGGER_SOURCE_DIR) +
                               "/tests/unit/nn/fixtures/training_" + model + ".safetensors");
  Training training(backend, model);
  std::vector<float> losses;
  for (uint64_t step = 0; step < kSteps; ++step) losses.push_back(training.step(step));
  expect_near(file, "losses", losses);
  training.expect_state(file);
}

}  // namespace outrigger::nn::testing
