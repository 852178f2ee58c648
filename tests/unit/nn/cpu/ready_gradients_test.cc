#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "network_run.h"
#include "nn/cpu/backend.h"
#include "nn/graph_builder.h"
#include "nn/models.h"
#include "nn/recompute.h"

/// What a backward pass tells of gradients while it runs.
namespace outrigger::nn {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Ge;
using ::testing::Le;

constexpr int64_t kSamples = 6;

Graph model(const std::string& name, int64_t size, HeadKind head = HeadKind::kLinear) {
  ModelOptions options{.name = name, .height = size, .width = size, .classes = 7, .head = head};
  if (name == "lenet5") options.channels = 1;
  if (name == "mobilefacenet") options.embedding = 32;
  return build_model(options);
}

/// Activations that are no norm's, and convolutions with biases.
Graph slopes_and_biases() {
  GraphBuilder builder("slopes", {8, 8, 1});
  builder.add("normalize", Normalize{{0.5f}, {0.5f}});
  builder.add("conv1", Convolution{.out_channels = 4, .kernel = 3, .padding = 1, .bias = true});
  builder.add("prelu1", Prelu{});
  builder.add("conv2", Convolution{.out_channels = 4, .kernel = 3, .padding = 1, .bias = true});
  builder.add("bn2", BatchNorm{});
  builder.add("pool2", MaxPool{2, 2});
  builder.add("prelu2", Prelu{});
  builder.add("conv3", Convolution{.out_channels = 4, .kernel = 3, .padding = 1, .bias = true});
  builder.add("bn3", BatchNorm{});
  builder.add("prelu3", Prelu{});
  builder.add("flatten", Flatten{});
  builder.add("fc", Linear{.out_features = 5});
  return builder.build();
}

struct Told {
  std::string name = {};
  Graph graph;
  std::string cut = {};  // a segment from here; absent: the whole network
  Precision precision = Precision::kFloat32;
  int threads = 2;
  bool deep = false;
  bool recomputes = false;
};

/// One segment's backward pass: what it told, and what it had written by then.
class ToldPass {
 public:
  explicit ToldPass(const Told& of)
      : segment_{of.cut.empty() ? 0 : of.graph.cut(of.cut).layers, of.graph.size()},
        values_(testing::draw_network_values(of.graph, kSamples)),
        threads_(of.threads),
        gradients_(static_cast<size_t>(of.graph.parameter_range(segment_).size),
                   std::numeric_limits<float>::quiet_NaN()),
        then_(gradients_.size()) {
    const Graph& graph = of.graph;
    auto backend = cpu::make_cpu_backend();
    if (of.recomputes) backend = make_recomputing(std::move(backend));
    const auto program = backend->compile(graph,
                                          {.segment = segment_,
                                           .batch = kSamples,
                                           .precision = of.precision,
                                           .input_gradient = segment_.begin > 0},
                                          threads_);
    const auto weights = program->new_weights();
    const auto tape = program->new_tape();
    const Range range = graph.parameter_range(segment_), buffers = graph.buffer_range(segment_);
    program->load(*weights, part_of(std::span(values_.parameters), range),
                  part_of(std::span(values_.buffers), buffers));
    const TensorSpec in = program->input_spec(), out = program->output_spec();
    Tensor input(in.type, in.shape), output(out.type, out.shape), input_gradient(in.type, in.shape);
    if (segment_.begin == 0) {
      std::memcpy(input.view().data, values_.pixels.data(), input.bytes());
    } else {
      std::ranges::fill(input.as<float>(), 0.5f);
    }
    std::vector<float> statistics(static_cast<size_t>(buffers.size));
    program->forward(*weights, *tape,
                     {std::as_const(input).view(), kSamples, values_.slots, values_.labels},
                     {output.view(), statistics});
    std::ranges::copy(values_.output_gradient, output.as<float>().begin());
    program->backward(*weights, *tape, std::as_const(output).view(),
                      {input_gradient.view(), gradients_, [this](int64_t first) { note(first); }});
  }

  const std::vector<int64_t>& told() const { return first_; }
  /// The first gradient that was told of and written once more, if any was; all are told of.
  std::optional<int64_t> written_again() const {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (std::bit_cast<uint32_t>(then_[i]) != std::bit_cast<uint32_t>(gradients_[i]))
        return static_cast<int64_t>(i);
    }
    return std::nullopt;
  }
  bool all_written() const {
    return std::ranges::none_of(gradients_, [](float value) { return std::isnan(value); });
  }

 private:
  void note(int64_t first) {
    const auto end = first_.empty() ? gradients_.end() : gradients_.begin() + first_.back();
    std::copy(gradients_.begin() + first, end, then_.begin() + first);
    first_.push_back(first);
  }

  const Segment segment_;
  const testing::NetworkValues values_;
  ThreadPool threads_;
  std::vector<float> gradients_;
  std::vector<float> then_;  // each gradient when it was told of
  std::vector<int64_t> first_;
};

TEST(ReadyGradients, AreToldOfOnTheWayAndNotWrittenAfterwards) {
  for (const Told& one : std::vector<Told>{
           {.name = "lenet5", .graph = model("lenet5", 32)},
           {.name = "resnet18", .graph = model("resnet18", 32), .deep = true},
           {.name = "mobilefacenet",
           .graph = model("mobilefacenet", 32, HeadKind::kArcFace),
           .deep = true},
           {.name = "a branched net", .graph = testing::narrow_resnet(), .threads = 1},
           {.name = "its end", .graph = testing::narrow_resnet(), .cut = "layer1"},
           {.name = "it in bfloat16",
           .graph = testing::narrow_resnet(),
           .precision = Precision::kBFloat16},
           {.name = "half of it frozen", .graph = testing::narrow_resnet("layer2")},
           {.name = "recomputed", .graph = model("resnet18", 64), .deep = true, .recomputes = true},
           {.name = "slopes and biases", .graph = slopes_and_biases()},
       }) {
    SCOPED_TRACE(one.name);
    const ToldPass pass(one);
    EXPECT_TRUE(pass.all_written());
    EXPECT_TRUE(std::ranges::is_sorted(pass.told(), std::greater{})) << "falls";
    EXPECT_EQ(std::ranges::adjacent_find(pass.told()), pass.told().end()) << "by something";
    ASSERT_FALSE(pass.told().empty());
    EXPECT_EQ(pass.told().back(), 0);
    EXPECT_EQ(pass.written_again(), std::nullopt);
    if (!one.deep) continue;
    EXPECT_GT(pass.told().size(), 12u);
    EXPECT_LT(pass.told()[pass.told().size() / 2], one.graph.parameter_count() / 2);
  }
}

TEST(ReadyGradients, OfSlopesAndBiasesHoldUpNothing) {
  const Graph graph = slopes_and_biases();
  const auto told = ToldPass({.graph = graph}).told();
  const auto begin = [&](const std::string& name) {
    return std::ranges::find(graph.parameters(), name, &Parameter::name)->range.offset;
  };
  // bn2's sums divide the pass: what is deferred before them runs beside what comes behind them.
  EXPECT_THAT(told, Contains(AllOf(Ge(begin("conv2.bias")), Le(begin("bn2.weight")))))
      << "prelu2's slopes and conv3's biases, before conv2's weights";
}

}  // namespace
}  // namespace outrigger::nn
