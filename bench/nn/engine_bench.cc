#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/random.h"
#include "common/thread_pool.h"
#include "nn/cpu/backend.h"
#include "nn/loss.h"
#include "nn/models.h"
#include "nn/optimizer.h"

/// Times the engine for compare.py, which keeps it beside PyTorch and asks for rounds in turn: for
/// each number of steps on standard input it prints the seconds they took.
namespace outrigger {
namespace {

struct Options {
  nn::ModelOptions model;
  int64_t batch = 0;
  int threads = 0;
  nn::Precision precision = nn::Precision::kFloat32;
  std::string
      what;  // "step": a training step; a layer: forward and backward up to there; "profile"
};

Options parse(const std::vector<std::string>& arguments) {
  if (arguments.size() != 8) {
    throw InvalidInput(
        "usage: outrigger-bench-nn MODEL SIDE CHANNELS CLASSES BATCH THREADS float32|bfloat16 "
        "step|profile|CUT");
  }
  Options options;
  options.model.name = arguments[0];
  options.model.height = options.model.width = std::stoll(arguments[1]);
  options.model.channels = std::stoll(arguments[2]);
  options.model.classes = std::stoll(arguments[3]);
  options.batch = std::stoll(arguments[4]);
  options.threads = std::stoi(arguments[5]);
  options.precision =
      arguments[6] == "bfloat16" ? nn::Precision::kBFloat16 : nn::Precision::kFloat32;
  options.what = arguments[7];
  return options;
}

/// Everything a step touches, made once.
class Trainer {
 public:
  Trainer(const nn::Graph& graph, const Options& options)
      : graph_(graph),
        whole_(options.what == "step"),
        threads_(options.threads),
        program_(nn::cpu::make_cpu_backend()->compile(
            graph,
            {.segment = {0, whole_ ? graph.size() : graph.cut(options.what).layers},
             .batch = options.batch,
             .precision = options.precision},
            threads_)),
        parameters_(static_cast<size_t>(graph.parameter_count())),
        buffers_(static_cast<size_t>(graph.buffer_count())),
        momentum_(parameters_.size()),
        input_(program_->input_spec().type, program_->input_spec().shape),
        output_(program_->output_spec().type, program_->output_spec().shape),
        gradient_(program_->output_spec().type, program_->output_spec().shape),
        weights_(program_->new_weights()),
        tape_(program_->new_tape()) {
    nn::initialize(graph, 1, parameters_, buffers_);
    const nn::Segment segment{0, whole_ ? graph.size() : graph.cut(options.what).layers};
    parameter_range_ = graph.parameter_range(segment);
    buffer_range_ = graph.buffer_range(segment);
    gradients_.resize(static_cast<size_t>(parameter_range_.size));
    statistics_.resize(static_cast<size_t>(buffer_range_.size));
    RandomStream random(1, RandomUse::kSyntheticData, 0);
    for (uint8_t& pixel : input_.as<uint8_t>()) pixel = static_cast<uint8_t>(random.below(256));
    for (int64_t i = 0; i < options.batch; ++i) {
      labels_.push_back(
          static_cast<int32_t>(random.below(static_cast<uint32_t>(options.model.classes))));
      slots_.push_back(static_cast<uint64_t>(i));
    }
    for (auto& byte : gradient_.view().type == ElementType::kFloat32 ? std::span<uint16_t>()
                                                                     : gradient_.as<uint16_t>())
      byte = to_bfloat16(1e-3f * random.normal());
    if (gradient_.type() == ElementType::kFloat32) {
      for (float& value : gradient_.as<float>()) value = 1e-3f * random.normal();
    }
    load();
  }

  void step() {
    program_->forward(*weights_, *tape_,
                      {input_.view(), static_cast<int64_t>(slots_.size()), slots_, labels_},
                      {output_.view(), statistics_});
    if (whole_) nn::softmax_cross_entropy(output_.view(), labels_, 0.0f, gradient_.view());
    program_->backward(*weights_, *tape_, gradient_.view(), {TensorView{}, gradients_});
    if (!whole_) return;
    const float by_batch = 1.0f / static_cast<float>(slots_.size());
    for (float& value : gradients_) value *= by_batch;
    nn::sgd_step(graph_, {.momentum = 0.9f}, 1e-3f, gradients_, momentum_, parameters_);
    nn::update_running_averages(graph_, graph_.whole(), static_cast<int64_t>(slots_.size()),
                                statistics_, buffers_);
    load();
  }

 private:
  void load() {
    program_->load(*weights_, std::span(parameters_).first(gradients_.size()),
                   std::span(buffers_).first(statistics_.size()));
  }

  const nn::Graph& graph_;
  const bool whole_;
  ThreadPool threads_;
  std::unique_ptr<nn::Program> program_;
  std::vector<float> parameters_, buffers_, momentum_, gradients_, statistics_;
  nn::Range parameter_range_, buffer_range_;
  Tensor input_, output_, gradient_;
  std::unique_ptr<nn::Weights> weights_;
  std::unique_ptr<nn::Tape> tape_;
  std::vector<int32_t> labels_;
  std::vector<uint64_t> slots_;
};

void print_profile(const nn::Graph& graph, const Options& options) {
  ThreadPool threads(options.threads);
  const auto costs = nn::cpu::profile(
      graph, {.segment = graph.whole(), .batch = options.batch, .precision = options.precision},
      threads, 5);
  for (const auto& cost : costs) {
    std::cout << cost.layer << "\t" << cost.forward_seconds * 1e3 << "\t"
              << cost.backward_seconds * 1e3 << "\n";
  }
}

void serve(const nn::Graph& graph, const Options& options) {
  Trainer trainer(graph, options);
  trainer.step();
  for (int steps = 0; std::cin >> steps;) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) trainer.step();
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()
              << "\n"
              << std::flush;
  }
}

}  // namespace
}  // namespace outrigger

int main(int argc, char** argv) {
  try {
    const auto options = outrigger::parse({argv + 1, argv + argc});
    const auto graph = outrigger::nn::build_model(options.model);
    options.what == "profile" ? outrigger::print_profile(graph, options)
                              : outrigger::serve(graph, options);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "outrigger-bench-nn: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
