#include "nn/resident.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <tuple>

#include "host_engine.h"
#include "network_run.h"
#include "nn/cuda/bucket_plan.h"
#include "nn/graph_builder.h"
#include "nn/loss.h"
#include "nn/reference/backend.h"

namespace outrigger::nn {
namespace {

using testing::draw_network_values;
using testing::input_of;
using testing::narrow_resnet;
using testing::NetworkValues;
using testing::relative_distance;

constexpr int64_t kBatch = 4;

/// A run's arrays on the host.
struct Arrays {
  std::vector<float> parameters, momentum, averaged;
  explicit Arrays(std::vector<float> of)
      : parameters(std::move(of)), momentum(parameters.size()), averaged(parameters) {}
  ResidentArrays view() { return {parameters, momentum, averaged}; }
};

struct Compiled {
  std::unique_ptr<Program> program;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Tape> tape;
  ResidentPass pass() { return {*program, *weights, *tape}; }
};

Compiled compile(const Backend& backend, const Graph& graph, Segment segment,
                 Precision precision = Precision::kFloat32) {
  ThreadPool threads(1);
  Compiled compiled;
  compiled.program = backend.compile(graph,
                                     {.segment = segment,
                                      .batch = kBatch,
                                      .precision = precision,
                                      .input_gradient = segment.begin > 0,
                                      .seed = 5},
                                     threads);
  compiled.weights = compiled.program->new_weights();
  compiled.tape = compiled.program->new_tape();
  return compiled;
}

// Stages, trains and collects.
LossResult train(Resident& resident, const ResidentPass& pass, const ForwardInput& in,
                 std::span<float> statistics, float scale = 1,
                 const TensorView& input_gradient = {}) {
  resident.stage(pass, std::span(&in, 1));
  resident.train(pass, {statistics, input_gradient}, scale);
  return resident.collect();
}

// What the host makes of the same: loss, statistics and gradients of one micro-batch.
struct Truth {
  LossResult loss;
  std::vector<float> statistics, gradients;
};

Truth truth(const Graph& graph, const NetworkValues& values, float smoothing) {
  auto compiled = compile(*make_reference_backend(), graph, graph.whole());
  const Program& program = *compiled.program;
  program.load(*compiled.weights, values.parameters, values.buffers);
  Tensor logits(ElementType::kFloat32, program.output_spec().shape);
  Tensor gradient(ElementType::kFloat32, program.output_spec().shape);
  Truth result{
      {}, std::vector<float>(values.buffers.size()), std::vector<float>(values.parameters.size())};
  program.forward(*compiled.weights, *compiled.tape, input_of(program, values),
                  {logits.view(), result.statistics});
  result.loss = softmax_cross_entropy(logits.view(), values.labels, smoothing, gradient.view());
  program.backward(*compiled.weights, *compiled.tape, gradient.view(), {{}, result.gradients});
  return result;
}

void step_on_host(const Graph& graph, const SgdOptions& options, std::vector<float> gradients,
                  float mean, double clip, Arrays& arrays) {
  for (float& value : gradients) value *= mean;
  const double norm = std::sqrt(sum_of_squares(graph, gradients));
  if (norm > clip)
    for (float& value : gradients) value *= static_cast<float>(clip / norm);
  sgd_step(graph, options, 0.1f, gradients, arrays.momentum, arrays.parameters);
  average_weights(0.9f, arrays.parameters, arrays.averaged);
}

const SgdOptions kSgd{.momentum = 0.9f, .nesterov = true, .weight_decay = 1e-3f};

// Two micro-batches with one set of weights, then a step; twice.
TEST(CudaResident, TrainsAsTheHostDoes) {
  for (const bool frozen : {false, true}) {
    const Graph graph = frozen ? narrow_resnet("layer2") : narrow_resnet();
    auto values = draw_network_values(graph, kBatch);
    const auto backend = cuda::testing::make_host_backend();
    const auto resident = backend->make_resident(graph, {kSgd, 0.9f, 0.1f});
    Arrays host(values.parameters), device(values.parameters);
    resident->put(device.view());
    auto compiled = compile(*backend, graph, graph.whole());
    for (int step = 0; step < 2; ++step) {
      resident->load(*compiled.program, *compiled.weights, values.buffers);
      resident->clear_gradients();
      values.parameters = host.parameters;
      const Truth expected = truth(graph, values, 0.1f);
      std::vector<float> sums(values.parameters.size());
      for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
        std::vector<float> statistics(values.buffers.size());
        const LossResult loss =
            train(*resident, compiled.pass(), input_of(*compiled.program, values), statistics);
        EXPECT_NEAR(loss.loss_sum, expected.loss.loss_sum, 1e-4 * expected.loss.loss_sum);
        EXPECT_EQ(loss.correct, expected.loss.correct);
        EXPECT_LT(relative_distance(statistics, expected.statistics), 1e-4);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += expected.gradients[i];
      }
      std::vector<float> gathered(sums.size());
      resident->fetch_gradients(gathered);
      EXPECT_LT(relative_distance(gathered, sums), 1e-3);
      const auto updated = resident->update({0.1f, 1.0f / (2 * kBatch), 0.5});
      EXPECT_TRUE(updated.weights_finite);
      EXPECT_GT(updated.gradient_norm, 0.5) << "it is clipped";
      step_on_host(graph, kSgd, sums, 1.0f / (2 * kBatch), 0.5, host);
    }
    resident->fetch(device.view());
    EXPECT_LT(relative_distance(device.parameters, host.parameters), 1e-4);
    EXPECT_LT(relative_distance(device.momentum, host.momentum), 1e-3);
    EXPECT_LT(relative_distance(device.averaged, host.averaged), 1e-4);
  }
}

// Two micro-batches as one pass: statistics and losses are those of each alone, bit for bit, since
// no sample's sums have another's in them; gradients of weights are sums over more at once.
TEST(CudaResident, RunsSeveralMicroBatchesAsOneWithStatisticsOfEach) {
  const Graph graph = narrow_resnet("conv1");
  const auto values = draw_network_values(graph, 2 * kBatch);
  const auto backend = cuda::testing::make_host_backend();
  const auto buffers = static_cast<size_t>(graph.buffer_count());
  const auto run = [&](int64_t groups) {
    const auto resident = backend->make_resident(graph, {kSgd, std::nullopt, 0.1f});
    std::vector<float> zeros(values.parameters.size()), parameters = values.parameters;
    resident->put({parameters, zeros, {}});
    resident->clear_gradients();
    ThreadPool threads(1);
    Compiled compiled;
    compiled.program = backend->compile(
        graph, {.segment = graph.whole(), .batch = groups * kBatch, .seed = 5, .groups = groups},
        threads);
    compiled.weights = compiled.program->new_weights();
    compiled.tape = compiled.program->new_tape();
    resident->load(*compiled.program, *compiled.weights, values.buffers);
    std::vector<float> statistics(2 * buffers), sums(values.parameters.size());
    LossResult loss;
    for (int pass = 0; pass < 3; ++pass) {  // the first as it is, then recorded
      loss = {};
      resident->clear_gradients();
      const size_t sample = values.pixels.size() / (2 * kBatch);
      std::vector<ForwardInput> parts;
      for (size_t i = 0; i < 2; ++i) {
        TensorSpec spec = compiled.program->input_spec();
        spec.shape.front() = kBatch;
        parts.push_back(
            {{spec.type, spec.shape,
              reinterpret_cast<const std::byte*>(values.pixels.data()) + i * kBatch * sample},
             kBatch,
             std::span(values.slots).subspan(i * kBatch, kBatch),
             std::span(values.labels).subspan(i * kBatch, kBatch)});
      }
      // All are queued before the first is collected.
      for (int64_t i = 0; i < 2; i += groups) {
        const auto first = static_cast<size_t>(i);
        resident->stage(compiled.pass(),
                        std::span(parts).subspan(first, static_cast<size_t>(groups)));
        resident->train(
            compiled.pass(),
            {std::span(statistics).subspan(first * buffers, static_cast<size_t>(groups) * buffers),
             {}},
            1);
      }
      for (int64_t i = 0; i < 2; i += groups) {
        const LossResult part = resident->collect();
        loss.loss_sum += part.loss_sum;
        loss.correct += part.correct;
      }
    }
    const ResidentTimes times = resident->take_times();
    EXPECT_GT(times.forward, 0);
    EXPECT_GT(times.backward, 0);
    EXPECT_GE(times.input, 0);
    EXPECT_EQ(resident->take_times().forward, 0) << "they are taken once";
    resident->fetch_gradients(sums);
    return std::tuple(loss.loss_sum, loss.correct, statistics, sums);
  };
  const auto [loss, correct, statistics, gradients] = run(1);
  const auto [loss2, correct2, statistics2, gradients2] = run(2);
  EXPECT_NEAR(loss2, loss, 1e-9 * loss);
  EXPECT_EQ(correct2, correct);
  EXPECT_EQ(statistics2, statistics);
  EXPECT_LT(relative_distance(gradients2, gradients), 1e-5);
}

// The optimizer's kernel against the host's, on the same gradients: bit for bit.
TEST(CudaResident, StepsAsTheHostsOptimizer) {
  const Graph graph = narrow_resnet("layer1");
  const auto values = draw_network_values(graph, kBatch);
  const auto backend = cuda::testing::make_host_backend();
  for (const bool nesterov : {false, true}) {
    SgdOptions options = kSgd;
    options.nesterov = nesterov;
    const auto resident = backend->make_resident(graph, {options, 0.9f, 0});
    Arrays host(values.parameters), device(values.parameters);
    resident->put(device.view());
    std::vector<float> gradients(values.parameters.size());
    for (const Parameter& parameter : graph.parameters()) {
      if (!parameter.trainable) continue;
      for (int64_t i = parameter.range.offset; i < parameter.range.end(); ++i)
        gradients[static_cast<size_t>(i)] = static_cast<float>(i % 13) - 6;
    }
    for (int step = 0; step < 3; ++step) {
      resident->put_gradients(gradients);
      resident->update({0.1f, 0.25f, std::nullopt});
      step_on_host(graph, options, gradients, 0.25f, 1e30, host);
    }
    resident->fetch(device.view());
    EXPECT_EQ(device.parameters, host.parameters);
    EXPECT_EQ(device.momentum, host.momentum);
    EXPECT_EQ(device.averaged, host.averaged);
  }
}

TEST(CudaResident, UpdatesNothingWhereAGradientIsNotFinite) {
  const Graph graph = narrow_resnet();
  const auto values = draw_network_values(graph, kBatch);
  const auto backend = cuda::testing::make_host_backend();
  const auto resident = backend->make_resident(graph, {kSgd, 0.9f, 0});
  Arrays device(values.parameters);
  resident->put(device.view());
  std::vector<float> gradients(values.parameters.size(), 1.0f);
  gradients.back() = std::nanf("");
  resident->put_gradients(gradients);
  EXPECT_FALSE(std::isfinite(resident->update({0.1f, 1, std::nullopt}).gradient_norm));
  Arrays after(values.parameters);
  resident->fetch(after.view());
  EXPECT_EQ(after.parameters, values.parameters);
  EXPECT_EQ(after.momentum, device.momentum);
}

TEST(CudaResident, AddsWhatWasComputedElsewhere) {
  const Graph graph = narrow_resnet();
  const auto backend = cuda::testing::make_host_backend();
  const auto resident = backend->make_resident(graph, {kSgd, std::nullopt, 0});
  std::vector<float> all(static_cast<size_t>(graph.parameter_count()));
  resident->clear_gradients();
  resident->add_gradients({3, 2}, std::vector<float>{1, 2});
  resident->add_gradients({4, 3}, std::vector<float>{10, 20, 30});
  resident->fetch_gradients(all);
  EXPECT_EQ((std::vector<float>(all.begin(), all.begin() + 8)),
            (std::vector<float>{0, 0, 0, 1, 12, 20, 30, 0}));
}

// Each rank has a micro-batch of its own; all end with the sum, the same bits on all.
TEST(CudaResident, SumsOverTheRanksThatJoined) {
  const Graph graph = narrow_resnet();
  const auto values = draw_network_values(graph, kBatch);
  const auto gradients_of = [&](cuda::testing::HostRanks* ranks, int rank, bool last) {
    const auto backend = cuda::testing::make_host_backend(ranks);
    const auto resident = backend->make_resident(graph, {kSgd, std::nullopt, 0});
    EXPECT_EQ(resident->join({rank, 2, std::chrono::seconds(1), false, {}}), ranks != nullptr);
    std::vector<float> zeros(values.parameters.size()), parameters = values.parameters;
    resident->put({parameters, zeros, {}});
    resident->clear_gradients();
    auto compiled = compile(*backend, graph, graph.whole());
    resident->load(*compiled.program, *compiled.weights, values.buffers);
    auto mine = values;
    if (rank == 1) std::ranges::reverse(mine.pixels);
    std::vector<float> statistics(values.buffers.size()), sums(values.parameters.size());
    auto pass = compiled.pass();
    pass.last = last;
    train(*resident, pass, input_of(*compiled.program, mine), statistics);
    if (ranks != nullptr) resident->sum_over_ranks();
    resident->fetch_gradients(sums);
    return sums;
  };
  auto expected = gradients_of(nullptr, 0, false);
  const auto second = gradients_of(nullptr, 1, false);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += second[i];
  for (const bool last : {false, true}) {
    cuda::testing::HostRanks ranks(2);
    std::vector<float> others;
    std::jthread other([&] { others = gradients_of(&ranks, 1, last); });
    EXPECT_EQ(gradients_of(&ranks, 0, last), expected);
    other.join();
    EXPECT_EQ(others, expected);
  }
}

// Around a move of the plan one rank's last pass is of the whole graph, and another's is not.
TEST(CudaResident, SumsInTheSamePiecesWhetherTheLastPassHasBegunItOrNot) {
  GraphBuilder builder("wide", {2, 2, 1});
  builder.add("normalize", Normalize{{0.5f}, {0.5f}});
  builder.add("flatten", Flatten{});
  builder.add("fc1", Linear{.out_features = 4});
  builder.add("fc2", Linear{.out_features = cuda::kBucketFloats / 4});
  builder.add("fc3", Linear{.out_features = 3});
  const Graph graph = builder.build();
  const auto values = draw_network_values(graph, kBatch);
  cuda::testing::HostRanks ranks(2);
  const auto sums_of = [&](int rank) {
    const auto backend = cuda::testing::make_host_backend(&ranks);
    const auto resident = backend->make_resident(graph, {kSgd, std::nullopt, 0});
    EXPECT_TRUE(resident->join({rank, 2, std::chrono::seconds(1), false, {}}));
    std::vector<float> zeros(values.parameters.size()), parameters = values.parameters;
    resident->put({parameters, zeros, {}});
    resident->clear_gradients();
    auto compiled = compile(*backend, graph, graph.whole());
    resident->load(*compiled.program, *compiled.weights, {});
    auto pass = compiled.pass();
    pass.last = rank == 0;
    train(*resident, pass, input_of(*compiled.program, values), {});
    resident->sum_over_ranks();
    std::vector<float> sums(values.parameters.size());
    resident->fetch_gradients(sums);
    return sums;
  };
  std::vector<float> others;
  std::jthread other([&] { others = sums_of(1); });
  const auto sums = sums_of(0);
  other.join();
  EXPECT_TRUE(others == sums);
}

// What leaves is rounded, and so is what comes back; a rank alone has neither.
TEST(CudaResident, SumsInBFloat16WhereRanksJoinedSo) {
  const Graph graph = narrow_resnet();
  const auto values = draw_network_values(graph, kBatch);
  const auto count = static_cast<size_t>(graph.parameter_count());
  for (const bool last : {false, true}) {
    cuda::testing::HostRanks ranks(2);
    const auto sums_of = [&](int rank) {
      const auto backend = cuda::testing::make_host_backend(&ranks);
      const auto resident = backend->make_resident(graph, {kSgd, std::nullopt, 0});
      EXPECT_TRUE(resident->join({rank, 2, std::chrono::seconds(1), true, {}}));
      std::vector<float> zeros(count), parameters = values.parameters;
      resident->put({parameters, zeros, {}});
      auto compiled = compile(*backend, graph, graph.whole());
      std::vector<float> statistics(values.buffers.size()), mine(count), sums(count);
      for (int step = 0; step < 3; ++step) {  // as recordings too
        resident->clear_gradients();
        resident->load(*compiled.program, *compiled.weights, values.buffers);
        auto pass = compiled.pass();
        pass.last = last;
        train(*resident, pass, input_of(*compiled.program, values), statistics);
        if (!last) resident->fetch_gradients(mine);
        resident->sum_over_ranks();
        resident->fetch_gradients(sums);
      }
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(sums[i], from_bfloat16(to_bfloat16(sums[i])));
        if (last) continue;
        // Both have the same gradients, so that the sum of the rounded ones is exact.
        EXPECT_EQ(sums[i], 2 * from_bfloat16(to_bfloat16(mine[i])));
      }
      return sums;
    };
    std::vector<float> others;
    std::jthread other([&] { others = sums_of(1); });
    const auto sums = sums_of(0);
    other.join();
    EXPECT_EQ(others, sums);
  }
}

// Powers of two change no digit of float32, whatever crosses the cut.
TEST(CudaResident, GivesTheSameGradientsWithEveryLossScale) {
  const Graph graph = narrow_resnet();
  const auto values = draw_network_values(graph, kBatch);
  const auto backend = cuda::testing::make_host_backend();
  const int cut = graph.cut("layer1").layers;
  const auto run = [&](float scale) {
    const auto resident = backend->make_resident(graph, {kSgd, std::nullopt, 0});
    std::vector<float> zeros(values.parameters.size()), parameters = values.parameters;
    resident->put({parameters, zeros, {}});
    resident->clear_gradients();
    auto stem = compile(*backend, graph, {0, cut});
    auto head = compile(*backend, graph, {cut, graph.size()});
    std::vector<float> statistics(values.buffers.size());
    const Range stem_buffers = graph.buffer_range({0, cut});
    const auto stem_statistics = part_of(std::span(statistics), stem_buffers);
    const auto head_statistics =
        std::span(statistics).subspan(static_cast<size_t>(stem_buffers.size));
    resident->load(*stem.program, *stem.weights, stem_statistics);
    resident->load(*head.program, *head.weights, head_statistics);
    const TensorSpec spec = head.program->input_spec();
    Tensor crossing(spec.type, spec.shape), gradient(spec.type, spec.shape);
    stem.program->forward(*stem.weights, *stem.tape, input_of(*stem.program, values),
                          {crossing.view(), stem_statistics});
    train(*resident, head.pass(), {crossing.view(), kBatch, values.slots, values.labels},
          statistics, scale, gradient.view());
    resident->backward(stem.pass(), gradient.view(), scale);
    std::vector<float> sums(values.parameters.size());
    resident->fetch_gradients(sums);
    const auto crossed = gradient.as<float>();
    sums.insert(sums.end(), crossed.begin(), crossed.end());
    return sums;
  };
  EXPECT_EQ(run(1), run(4096));
}

// float16 has 11 bits; without a scale, what is below 6e-8 is gone.
TEST(CudaResident, InFloat16IsAsNearAsItsDigits) {
  const Graph graph = narrow_resnet();
  const auto values = draw_network_values(graph, kBatch);
  const auto backend = cuda::testing::make_host_backend();
  const Truth expected = truth(graph, values, 0);
  const auto resident = backend->make_resident(graph, {kSgd, std::nullopt, 0});
  std::vector<float> zeros(values.parameters.size()), parameters = values.parameters;
  resident->put({parameters, zeros, {}});
  auto compiled = compile(*backend, graph, graph.whole(), Precision::kFloat16);
  resident->load(*compiled.program, *compiled.weights, values.buffers);
  resident->clear_gradients();
  std::vector<float> statistics(values.buffers.size()), sums(values.parameters.size());
  const LossResult loss =
      train(*resident, compiled.pass(), input_of(*compiled.program, values), statistics, 256);
  resident->fetch_gradients(sums);
  EXPECT_NEAR(loss.loss_sum, expected.loss.loss_sum, 0.02 * expected.loss.loss_sum);
  EXPECT_LT(relative_distance(statistics, expected.statistics), 0.01);
  const double far = relative_distance(sums, expected.gradients);
  EXPECT_LT(far, 0.1);
  EXPECT_GT(far, 1e-5) << "it was not float16";
}

}  // namespace
}  // namespace outrigger::nn
