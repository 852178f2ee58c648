#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "../unit/nn/network_run.h"
#include "gpu.h"
#include "nn/cpu/backend.h"
#include "nn/graph_builder.h"
#include "nn/loss.h"
#include "nn/models.h"
#include "nn/optimizer.h"
#include "nn/resident.h"

namespace outrigger::nn {
namespace {

using testing::draw_network_values;
using testing::gpu;
using testing::input_of;

constexpr int64_t kBatch = 16;
constexpr SgdOptions kSgd{.momentum = 0.9f};

// So small that steps do not blow roundings up: of parameters that differ by 3e-7, relative, two
// runs of the CPU's differ by 1e-4 of the loss behind twenty steps, at most. At ten times it they
// differ by more than 1e-3.
float rate_of(const Graph& graph) {
  return std::holds_alternative<ArcFace>(graph.layers().back().operation) ? 1e-5f : 3e-5f;
}

struct Compiled {
  std::unique_ptr<Program> program;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Tape> tape;
};

Compiled compile(const Backend& backend, const Graph& graph, Precision precision,
                 ThreadPool& threads) {
  Compiled compiled;
  compiled.program = backend.compile(
      graph, {.segment = graph.whole(), .batch = kBatch, .precision = precision, .seed = 5},
      threads);
  compiled.weights = compiled.program->new_weights();
  compiled.tape = compiled.program->new_tape();
  return compiled;
}

// The losses of steps on one batch, with loss, gradients and optimizer on the host.
std::vector<double> losses_of_host(const Backend& backend, const Graph& graph, int steps) {
  ThreadPool threads(available_cores());
  auto values = draw_network_values(graph, kBatch);
  const Compiled compiled = compile(backend, graph, Precision::kFloat32, threads);
  const Program& program = *compiled.program;
  Tensor logits(ElementType::kFloat32, program.output_spec().shape);
  Tensor gradient(ElementType::kFloat32, program.output_spec().shape);
  std::vector<float> gradients(values.parameters.size()), momentum(values.parameters.size());
  std::vector<float> statistics(values.buffers.size());
  std::vector<double> result;
  for (int step = 0; step < steps; ++step) {
    program.load(*compiled.weights, values.parameters, values.buffers);
    program.forward(*compiled.weights, *compiled.tape, input_of(program, values),
                    {logits.view(), statistics});
    const auto loss = softmax_cross_entropy(logits.view(), values.labels, 0, gradient.view());
    result.push_back(loss.loss_sum / kBatch);
    program.backward(*compiled.weights, *compiled.tape, gradient.view(), {{}, gradients});
    for (float& value : gradients) value /= kBatch;
    sgd_step(graph, kSgd, rate_of(graph), gradients, momentum, values.parameters);
    update_running_averages(graph, graph.whole(), kBatch, statistics, values.buffers);
  }
  return result;
}

// The same with all of it on the device.
std::vector<double> losses_of_device(const Graph& graph, int steps, Precision precision,
                                     float loss_scale, const Backend& backend = *gpu().backend) {
  ThreadPool threads(1);
  auto values = draw_network_values(graph, kBatch);
  const Compiled compiled = compile(backend, graph, precision, threads);
  const auto resident = backend.make_resident(graph, {kSgd, std::nullopt, 0});
  std::vector<float> momentum(values.parameters.size());
  resident->put({values.parameters, momentum, {}});
  std::vector<float> statistics(values.buffers.size());
  std::vector<double> result;
  for (int step = 0; step < steps; ++step) {
    resident->load(*compiled.program, *compiled.weights, values.buffers);
    resident->clear_gradients();
    const ResidentPass pass{*compiled.program, *compiled.weights, *compiled.tape};
    const ForwardInput input = input_of(*compiled.program, values);
    resident->stage(pass, std::span(&input, 1));
    resident->train(pass, {statistics, {}}, loss_scale);
    const LossResult loss = resident->collect();
    result.push_back(loss.loss_sum / kBatch);
    const ResidentUpdated updated = resident->update({rate_of(graph), 1.0f / kBatch, std::nullopt});
    EXPECT_TRUE(std::isfinite(updated.gradient_norm) && updated.weights_finite) << step;
    update_running_averages(graph, graph.whole(), kBatch, statistics, values.buffers);
  }
  return result;
}

Graph model(const std::string& name) {
  ModelOptions options{.name = name, .classes = 10};
  if (name != "resnet18") options.head = HeadKind::kArcFace;
  return build_model(options);
}

class TrainingOnGpu : public testing::OnGpu, public ::testing::WithParamInterface<std::string> {};

// TF32 is off, so only the order of sums differs.
TEST_P(TrainingOnGpu, TakesTwentyStepsAsTheCpu) {
  const Graph graph = model(GetParam());
  const auto expected = losses_of_host(*cpu::make_cpu_backend(), graph, 20);
  const auto by_program = losses_of_host(*gpu().backend, graph, 20);
  const auto resident = losses_of_device(graph, 20, Precision::kFloat32, 1);
  for (size_t step = 0; step < expected.size(); ++step) {
    const double tolerance = 1e-3 * std::max(1.0, expected[step]);
    EXPECT_NEAR(by_program[step], expected[step], tolerance) << step;
    EXPECT_NEAR(resident[step], expected[step], tolerance) << step;
  }
  EXPECT_LT(resident.back(), 0.95 * resident.front());
}

// The losses of steps whose two micro-batches run as one pass, or one behind the other.
std::vector<double> losses_of_pairs(const Graph& graph, int64_t at_once) {
  ThreadPool threads(1);
  auto values = draw_network_values(graph, kBatch);
  const int64_t each = kBatch / 2;
  const auto program = gpu().backend->compile(
      graph, {.segment = graph.whole(), .batch = at_once * each, .seed = 5, .groups = at_once},
      threads);
  const auto weights = program->new_weights();
  const auto tape = program->new_tape();
  const ResidentPass pass{*program, *weights, *tape};
  const auto resident = gpu().backend->make_resident(graph, {kSgd, std::nullopt, 0});
  std::vector<float> momentum(values.parameters.size());
  resident->put({values.parameters, momentum, {}});
  std::vector<float> statistics(2 * values.buffers.size());
  const auto size = static_cast<size_t>(at_once * each);
  const size_t sample = values.pixels.size() / kBatch;
  std::vector<double> result;
  for (int step = 0; step < 5; ++step) {
    resident->load(*program, *weights, values.buffers);
    resident->clear_gradients();
    for (size_t first = 0; first < kBatch; first += size) {
      const ForwardInput input{{ElementType::kUint8, program->input_spec().shape,
                                reinterpret_cast<const std::byte*>(&values.pixels[first * sample])},
                               at_once * each,
                               std::span(values.slots).subspan(first, size),
                               std::span(values.labels).subspan(first, size)};
      const auto row = static_cast<size_t>(graph.buffer_count());
      resident->stage(pass, std::span(&input, 1));
      resident->train(pass, {std::span(statistics).first(row * static_cast<size_t>(at_once)), {}},
                      1);
    }
    double loss = 0;
    for (int64_t i = 0; i < 2; i += at_once) loss += resident->collect().loss_sum;
    result.push_back(loss / kBatch);
    resident->update({rate_of(graph), 1.0f / kBatch, std::nullopt});
  }
  return result;
}

// Statistics are of each micro-batch alone; sums of gradients have another order.
TEST_P(TrainingOnGpu, RunsTwoMicroBatchesAsOneAsOneBehindTheOther) {
  const Graph graph = model(GetParam());
  const auto expected = losses_of_pairs(graph, 1);
  const auto actual = losses_of_pairs(graph, 2);
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(actual[step], expected[step], 1e-3 * std::max(1.0, expected[step])) << step;
}

// Of the first step's loss the digits of the type hold; later ones drift apart, and all fall.
TEST_P(TrainingOnGpu, LearnsInFloat16WithALossScale) {
  const Graph graph = model(GetParam());
  const auto exact = losses_of_device(graph, 20, Precision::kFloat32, 1);
  const auto half = losses_of_device(graph, 20, Precision::kFloat16, 128);
  EXPECT_NEAR(half.front(), exact.front(), 0.02 * exact.front());
  EXPECT_LT(half.back(), half.front());
}

// Bit for bit: the algorithms are deterministic.
TEST_P(TrainingOnGpu, TrainsTheSameWhereActivationsAreComputedAgain) {
  const Graph graph = model(GetParam());
  const auto again = cuda::make_cuda_backend({.recompute = true});
  const auto taken = [&](const Backend& backend) {
    ThreadPool threads(1);
    const auto memory = compile(backend, graph, Precision::kFloat32, threads).program->memory();
    return memory.kept + memory.work_space;
  };
  EXPECT_LT(taken(*again), taken(*gpu().backend));
  EXPECT_EQ(losses_of_device(graph, 10, Precision::kFloat32, 1, *again),
            losses_of_device(graph, 10, Precision::kFloat32, 1));
}

// Steps of passes of two micro-batches, then of one, whose programs share their memory or not.
std::vector<float> trained_in_turn(const Graph& graph, const std::shared_ptr<WorkSpace>& space,
                                   bool grows) {
  ThreadPool threads(1);
  auto values = draw_network_values(graph, kBatch);
  const Backend& backend = *gpu().backend;
  std::vector<Compiled> programs;
  for (int64_t groups : grows ? std::array{1, 2} : std::array{2, 1}) {
    Compiled& compiled = programs.emplace_back();
    compiled.program = backend.compile(graph,
                                       {.segment = graph.whole(),
                                        .batch = groups * kBatch / 2,
                                        .seed = 5,
                                        .work_space = space,
                                        .groups = groups},
                                       threads);
    compiled.weights = compiled.program->new_weights();
    compiled.tape = compiled.program->new_tape();
  }
  if (grows) std::swap(programs[0], programs[1]);
  const auto resident = backend.make_resident(graph, {kSgd, std::nullopt, 0});
  std::vector<float> momentum(values.parameters.size());
  resident->put({values.parameters, momentum, {}});
  const auto row = static_cast<size_t>(graph.buffer_count());
  std::vector<float> statistics(3 * row);
  for (int step = 0; step < 5; ++step) {  // from the second on as recordings
    resident->clear_gradients();
    for (size_t i = 0; i < programs.size(); ++i) {
      const Compiled& compiled = programs[i];
      const ResidentPass pass{*compiled.program, *compiled.weights, *compiled.tape};
      const int64_t samples = compiled.program->input_spec().shape.front();
      const ForwardInput input = input_of(*compiled.program, values, samples);
      resident->stage(pass, std::span(&input, 1));
      resident->load(*compiled.program, *compiled.weights, values.buffers);
      resident->train(pass, {std::span(statistics).subspan(i * 2 * row, (2 - i) * row), {}}, 1);
    }
    for (size_t i = 0; i < programs.size(); ++i) resident->collect();
    resident->update({rate_of(graph), 1.0f / kBatch, std::nullopt});
  }
  std::vector<float> parameters(values.parameters.size());
  resident->fetch({parameters, {}, {}});
  std::vector<float> first(100);
  resident->fetch_parameters({3, 100}, first);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), parameters.begin() + 3));
  return parameters;
}

// Bit for bit: nothing of a pass is needed when the next one begins.
TEST_P(TrainingOnGpu, TrainsTheSameWhereProgramsShareTheirMemory) {
  const Graph graph = model(GetParam());
  const auto apart = trained_in_turn(graph, nullptr, false);
  EXPECT_EQ(trained_in_turn(graph, gpu().backend->make_work_space(), false), apart);
  EXPECT_EQ(trained_in_turn(graph, gpu().backend->make_work_space(), true), apart);
}

class WorkSpaceOnGpu : public testing::OnGpu {};

/// A layer of 2^36 weights, 256 GiB.
Graph beyond_all_memory() {
  GraphBuilder builder("large", {256, 256, 1});
  builder.add("normalize", Normalize{{0.5f}, {0.5f}});
  builder.add("flatten", Flatten{});
  builder.add("fc", Linear{.out_features = int64_t{1} << 20});
  return builder.build();
}

// What does not fit is refused as that, and those that were there before go on.
TEST_F(WorkSpaceOnGpu, KeepsItsProgramsWhereAnotherDoesNotFit) {
  ThreadPool threads(1);
  const Graph graph = model("resnet18"), large = beyond_all_memory();
  const auto space = gpu().backend->make_work_space();
  const auto compile = [&](const Graph& of) {
    return gpu().backend->compile(
        of, {.segment = of.whole(), .batch = kBatch, .seed = 5, .work_space = space}, threads);
  };
  const auto values = draw_network_values(graph, kBatch);
  const auto program = compile(graph);
  const auto weights = program->new_weights();
  const auto tape = program->new_tape();
  const auto loss = [&] {
    const auto resident = gpu().backend->make_resident(graph, {kSgd, std::nullopt, 0});
    std::vector<float> momentum(values.parameters.size()), parameters = values.parameters;
    resident->put({parameters, momentum, {}});
    resident->load(*program, *weights, values.buffers);
    const ResidentPass pass{*program, *weights, *tape};
    const ForwardInput input = input_of(*program, values);
    std::vector<float> statistics(values.buffers.size());
    resident->clear_gradients();
    resident->stage(pass, std::span(&input, 1));
    resident->train(pass, {statistics, {}}, 1);
    return resident->collect().loss_sum;
  };
  const double before = loss();
  EXPECT_THROW(compile(large), cuda::OutOfDeviceMemory);
  EXPECT_EQ(loss(), before);
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingOnGpu,
                         ::testing::Values("resnet18", "iresnet50", "mobilefacenet"));

}  // namespace
}  // namespace outrigger::nn
