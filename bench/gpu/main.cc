#include <chrono>
#include <cmath>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "bench/gpu/synthetic_feed.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/thread_pool.h"
#include "nn/cpu/backend.h"
#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"
#include "nn/models.h"
#include "training/trainer/trainer.h"

/// Times training steps on synthetic input for compare.py, which keeps it beside PyTorch and asks
/// for rounds in turn: says "ready" and the device memory it holds, in bytes; then, for each number
/// of steps on standard input, the seconds they took and the last loss. Everything is the server's
/// own: its trainer, and its programs. Exits with 24 where there is no GPU that can be used.
namespace outrigger::bench {
namespace {

constexpr int kNoDevice = 24;  // docs/exit-codes.md
constexpr const char* kUsage =
    "usage: outrigger-bench-gpu MODEL SIDE CLASSES linear|arcface BATCH GROUP AT_ONCE "
    "float32|tf32|bfloat16|float16 cuda|cpu [PLANS]\n"
    "  GROUP: samples of a group of batch norm; AT_ONCE: samples that run as one pass;\n"
    "  PLANS: the file of the fastest plans, which are timed where it has none, as a server does";

struct Options {
  nn::ModelOptions model;
  int64_t batch = 0, group = 0, at_once = 0;
  std::string precision, device, plans;
};

Options parse(const std::vector<std::string>& arguments) {
  if (arguments.size() != 9 && arguments.size() != 10) throw InvalidInput(kUsage);
  Options options;
  options.model.name = arguments[0];
  options.model.height = options.model.width = std::stoll(arguments[1]);
  if (options.model.name == "lenet5") options.model.channels = 1;
  options.model.classes = std::stoll(arguments[2]);
  if (arguments[3] == "arcface") options.model.head = nn::HeadKind::kArcFace;
  options.batch = std::stoll(arguments[4]);
  options.group = std::stoll(arguments[5]);
  options.at_once = std::stoll(arguments[6]);
  options.precision = arguments[7];
  options.device = arguments[8];
  if (arguments.size() == 10) options.plans = arguments[9];
  if (options.group < 1 || options.batch % options.group != 0 ||
      options.at_once % options.group != 0 || options.at_once < options.group)
    throw InvalidInput("BATCH and AT_ONCE are multiples of GROUP");
  return options;
}

nn::Precision precision_of(const Options& options) {
  if (options.precision == "bfloat16") return nn::Precision::kBFloat16;
  if (options.precision == "float16") return nn::Precision::kFloat16;
  return nn::Precision::kFloat32;
}

std::unique_ptr<nn::Backend> open(const Options& options) {
  if (options.device == "cpu") return nn::cpu::make_cpu_backend();
  nn::cuda::CudaOptions cuda;
  cuda.bfloat16 = options.precision == "bfloat16";
  cuda.tensor_float32 = options.precision == "tf32";
  cuda.plan_file = options.plans;
  return nn::cuda::make_cuda_backend(cuda);
}

training::TrainerOptions trainer_options(const Options& options) {
  training::TrainerOptions trainer;
  trainer.device.micro_batch = options.group;
  trainer.device.precision = precision_of(options);
  trainer.device.seed = 1;
  if (options.device == "cuda")
    trainer.device.most_at_once = static_cast<uint32_t>(options.at_once / options.group);
  trainer.micro_batches = static_cast<uint32_t>(options.batch / options.group);
  trainer.optimizer = {.momentum = 0.9f, .weight_decay = 5e-4f};
  trainer.learning_rate = [](uint64_t) { return 1e-3f; };
  return trainer;
}

training::TrainingState first_state(const nn::Graph& graph) {
  training::TrainingState state;
  state.parameters.resize(static_cast<size_t>(graph.parameter_count()));
  state.momentum.resize(state.parameters.size());
  state.buffers.resize(static_cast<size_t>(graph.buffer_count()));
  nn::initialize(graph, 1, state.parameters, state.buffers);
  return state;
}

int64_t held(const nn::Backend& backend) {
  int64_t bytes = 0;
  for (const nn::cuda::MemoryUse& use : nn::cuda::memory_uses(backend)) bytes += use.bytes;
  return bytes;
}

int run(const Options& options) {
  const nn::Graph graph = nn::build_model(options.model);
  const auto backend = open(options);
  ThreadPool threads(options.device == "cpu" ? 2 : 1);
  SyntheticFeed feed({.sample = graph.input(),
                      .micro_batch = static_cast<uint32_t>(options.group),
                      .micro_batches = static_cast<uint32_t>(options.batch / options.group),
                      .classes = static_cast<uint32_t>(options.model.classes)});
  const SystemClock clock;
  training::Trainer trainer(trainer_options(options), graph, *backend, threads, feed, clock,
                            first_state(graph));
  double loss = 0;
  const auto step = [&] { loss = trainer.step().loss; };
  for (int i = 0; i < 3; ++i) step();  // plans, then recordings, then as it goes on
  std::cout << "ready " << held(*backend) << "\n" << std::flush;
  for (int64_t steps = 0; std::cin >> steps;) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < steps; ++i) step();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!std::isfinite(loss)) throw Error("the loss is no number: a figure of it says nothing");
    std::cout << took.count() << " " << loss << "\n" << std::flush;
  }
  return 0;
}

int guarded(const std::vector<std::string>& arguments) {
  try {
    return run(parse(arguments));
  } catch (const nn::cuda::NoDevice& error) {
    std::cerr << error.what() << "\n";
    return kNoDevice;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

}  // namespace
}  // namespace outrigger::bench

int main(int argc, char** argv) {
  return outrigger::bench::guarded(std::vector<std::string>(argv + 1, argv + argc));
}
