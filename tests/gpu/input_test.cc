#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <utility>
#include <vector>

#include "../unit/nn/network_run.h"
#include "gpu.h"
#include "nn/models.h"
#include "nn/resident.h"
#include "transport/codec.h"

/// Inputs that the device takes out of pinned memory, and unpacks itself: the same bits as of those
/// that the host brings.
namespace outrigger::nn {
namespace {

using testing::draw_network_values;
using testing::gpu;
using testing::NetworkValues;

constexpr int64_t kSamples = 8;

class InputOnGpu : public testing::OnGpu {};

/// What a pass leaves.
struct Outcome {
  double loss = 0;
  std::vector<float> statistics, gradients;
  bool operator==(const Outcome&) const = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << "a loss of " << std::setprecision(17) << outcome.loss << " with "
       << outcome.statistics.size() << " statistics and " << outcome.gradients.size()
       << " gradients";
}

/// Passes of the layers behind `cut`, of which two are under way at once; inputs are dropped as
/// soon as they are staged.
class Passes {
 public:
  Passes(const Graph& graph, int cut, Precision precision)
      : values_(draw_network_values(graph, kSamples)) {
    program_ = gpu().backend->compile(
        graph,
        {.segment = {cut, graph.size()}, .batch = kSamples, .precision = precision, .seed = 5},
        threads_);
    weights_ = program_->new_weights();
    tape_ = program_->new_tape();
    resident_ = gpu().backend->make_resident(graph, {{.momentum = 0.9f}, std::nullopt, 0});
    std::vector<float> momentum(values_.parameters.size());
    resident_->put({values_.parameters, momentum, {}});
    const Range buffers = graph.buffer_range({cut, graph.size()});
    resident_->load(
        *program_, *weights_,
        std::span(std::as_const(values_.buffers))
            .subspan(static_cast<size_t>(buffers.offset), static_cast<size_t>(buffers.size)));
  }
  TensorSpec spec() const { return program_->input_spec(); }

  /// `make` gives the input of a pass.
  template <typename Make>
  Outcome run(const Make& make) {
    Outcome outcome{0, std::vector<float>(values_.buffers.size()),
                    std::vector<float>(values_.parameters.size())};
    resident_->clear_gradients();
    const ResidentPass pass{*program_, *weights_, *tape_};
    for (int i = 0; i < 4; ++i) {
      {
        ForwardInput input = make();
        input.count = kSamples;
        input.slots = values_.slots;
        input.labels = values_.labels;
        resident_->stage(pass, std::span(&input, 1));
      }
      resident_->train(pass, {outcome.statistics, {}}, 1);
      if (i > 0) outcome.loss += resident_->collect().loss_sum;
    }
    outcome.loss += resident_->collect().loss_sum;
    resident_->fetch_gradients(outcome.gradients);
    return outcome;
  }

 private:
  ThreadPool threads_{1};
  NetworkValues values_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Tape> tape_;
  std::unique_ptr<Resident> resident_;
};

std::shared_ptr<std::byte> pinned_copy(std::span<const std::byte> bytes) {
  auto memory = gpu().backend->input_memory()->acquire(bytes.size());
  std::ranges::copy(bytes, memory.get());
  return memory;
}

TEST_F(InputOnGpu, IsTheSameOutOfPinnedMemory) {
  const Graph graph = build_model({.name = "resnet18", .classes = 10});
  Passes passes(graph, 0, Precision::kFloat32);
  const auto pixels = draw_network_values(graph, kSamples).pixels;
  const auto bytes = std::as_bytes(std::span(pixels));
  const Outcome ordinary = passes.run([&] {
    return ForwardInput{{ElementType::kUint8, passes.spec().shape, bytes.data()}};
  });
  const Outcome pinned = passes.run([&] {
    const auto memory = pinned_copy(bytes);
    ForwardInput input{{ElementType::kUint8, passes.spec().shape, memory.get()}};
    input.owner = memory;
    return input;
  });
  EXPECT_EQ(pinned, ordinary);
}

TEST_F(InputOnGpu, IsTheSameWhereItWasUnpackedThere) {
  const Graph graph = build_model({.name = "resnet18", .classes = 10});
  const int cut = graph.cut("layer1").layers;
  for (const Precision precision :
       {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat16}) {
    Passes passes(graph, cut, precision);
    const TensorSpec spec = passes.spec();
    Tensor values(ElementType::kFloat32, spec.shape);
    float next = 0;
    for (float& value : values.as<float>()) value = (next += 0.37f) > 3 ? next = -1 : next;
    for (const bool relu : {false, true}) {
      if (relu) {
        for (float& value : values.as<float>()) value = std::max(value, 0.0f);
      }
      const auto encoded = transport::encode(std::as_const(values).view(), WireFormat::kInt8);
      const Tensor unpacked = transport::decode(encoded, spec.type);
      SCOPED_TRACE(std::string(to_string(spec.type)) + (relu ? ", unsigned" : ", signed") +
                   ", precision " + std::to_string(static_cast<int>(precision)));
      const auto ordinary = [&] { return ForwardInput{unpacked.view()}; };
      const Outcome by_the_host = passes.run(ordinary);
      EXPECT_EQ(passes.run(ordinary), by_the_host) << "the same bits every time";
      const Outcome by_the_device = passes.run([&] {
        auto mine = encoded;
        mine.data.owner = pinned_copy(encoded.data.bytes);
        mine.data.bytes = {static_cast<const std::byte*>(mine.data.owner.get()),
                           encoded.data.bytes.size()};
        const auto packed = *transport::packed_of(mine);
        ForwardInput input{packed.elements};
        input.owner = mine.data.owner;
        input.scales = packed.scales.as<float>();
        return input;
      });
      EXPECT_EQ(by_the_device, by_the_host);
    }
  }
}

}  // namespace
}  // namespace outrigger::nn
