#include "network_run.h"

#include <cmath>
#include <memory>

#include "common/random.h"
#include "nn/graph_builder.h"
#include "nn/models.h"

namespace outrigger::nn::testing {
namespace {

// One segment with all it needs.
struct Piece {
  std::unique_ptr<Program> program;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Tape> tape;
  Range parameters, buffers;
  Tensor output, output_gradient;
};

Piece make_piece(const Backend& backend, ThreadPool& threads, const Graph& graph,
                 ProgramOptions options, const NetworkValues& values) {
  Piece piece;
  options.batch = values.batch;
  options.input_gradient = options.segment.begin > 0;
  options.seed = 5;
  piece.program = backend.compile(graph, options, threads);
  piece.weights = piece.program->new_weights();
  piece.tape = piece.program->new_tape();
  piece.parameters = graph.parameter_range(options.segment);
  piece.buffers = graph.buffer_range(options.segment);
  piece.output = Tensor(piece.program->output_spec().type, piece.program->output_spec().shape);
  piece.output_gradient =
      Tensor(piece.program->output_spec().type, piece.program->output_spec().shape);
  piece.program->load(*piece.weights, part_of(std::span(values.parameters), piece.parameters),
                      part_of(std::span(values.buffers), piece.buffers));
  return piece;
}

// Two convolutions and the identity, projected where the stride is not 1.
int add_block(GraphBuilder& builder, const std::string& name, int64_t channels, int64_t stride,
              int identity) {
  builder.add(name + ".conv1", Convolution{channels, 3, stride, 1}, {identity});
  builder.add(name + ".bn1", BatchNorm{});
  builder.add(name + ".relu1", Relu{});
  builder.add(name + ".conv2", Convolution{channels, 3, 1, 1});
  const int main = builder.add(name + ".bn2", BatchNorm{});
  if (stride != 1) {
    builder.add(name + ".downsample.0", Convolution{channels, 1, stride}, {identity});
    identity = builder.add(name + ".downsample.1", BatchNorm{});
  }
  builder.add(name + ".add", Add{}, {main, identity});
  return builder.add(name + ".relu2", Relu{});
}

}  // namespace

Graph narrow_resnet(const std::optional<std::string>& freeze_until) {
  GraphBuilder builder("narrow", {16, 16, 3});
  builder.add("normalize", Normalize{{0.5f, 0.5f, 0.5f}, {0.25f, 0.25f, 0.25f}});
  builder.add("conv1", Convolution{16, 3, 1, 1});
  builder.add("bn1", BatchNorm{});
  builder.add("relu", Relu{});
  int last = builder.add("maxpool", MaxPool{3, 2, 1});
  last = add_block(builder, "layer1", 16, 1, last);
  last = add_block(builder, "layer2", 32, 2, last);
  add_block(builder, "layer3", 48, 2, last);
  builder.add("avgpool", GlobalAveragePool{});
  builder.add("dropout", Dropout{0.2f});
  builder.add("fc", Linear{10});
  if (freeze_until) builder.freeze_until(*freeze_until);
  return builder.build();
}

NetworkValues draw_network_values(const Graph& graph, int64_t batch) {
  NetworkValues values;
  values.batch = batch;
  values.parameters.resize(static_cast<size_t>(graph.parameter_count()));
  values.buffers.resize(static_cast<size_t>(graph.buffer_count()));
  initialize(graph, 3, values.parameters, values.buffers);
  RandomStream random(17, RandomUse::kSyntheticData, 1);
  values.pixels.resize(static_cast<size_t>(batch * element_count(graph.input())));
  for (auto& pixel : values.pixels) pixel = static_cast<uint8_t>(random.below(256));
  const int64_t outputs = element_count(graph.layers().back().output);
  values.output_gradient.resize(static_cast<size_t>(batch * outputs));
  for (auto& gradient : values.output_gradient) gradient = random.normal();
  for (int64_t i = 0; i < batch; ++i) {
    values.labels.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(outputs))));
    values.slots.push_back(random.next_u64());
  }
  return values;
}

ForwardInput input_of(const Program& program, const NetworkValues& values, int64_t images) {
  const int64_t count = images > 0 ? images : values.batch;
  return {{ElementType::kUint8, program.input_spec().shape,
           reinterpret_cast<const std::byte*>(values.pixels.data())},
          count,
          std::span(values.slots).first(static_cast<size_t>(count)),
          std::span(values.labels).first(static_cast<size_t>(count))};
}

NetworkResult run_network(const Backend& backend, ThreadPool& threads, const Graph& graph,
                          Precision precision, const NetworkValues& values,
                          const std::vector<int>& cuts) {
  std::vector<Piece> pieces;
  int begin = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const int end = i < cuts.size() ? cuts[i] : graph.size();
    pieces.push_back(make_piece(backend, threads, graph,
                                {.segment = {begin, end}, .precision = precision}, values));
    begin = end;
  }
  NetworkResult result;
  result.statistics.resize(values.buffers.size());
  result.gradients.resize(values.parameters.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    ForwardInput input = input_of(*pieces[0].program, values);
    if (i > 0) input.input = pieces[i - 1].output.view();
    pieces[i].program->forward(
        *pieces[i].weights, *pieces[i].tape, input,
        {pieces[i].output.view(), part_of(std::span(result.statistics), pieces[i].buffers)});
  }
  const auto output = pieces.back().output.as<float>();
  result.output.assign(output.begin(), output.end());
  std::copy(values.output_gradient.begin(), values.output_gradient.end(),
            pieces.back().output_gradient.as<float>().begin());
  for (size_t i = pieces.size(); i-- > 0;) {
    const TensorView to = i > 0 ? pieces[i - 1].output_gradient.view() : TensorView{};
    pieces[i].program->backward(*pieces[i].weights, *pieces[i].tape,
                                pieces[i].output_gradient.view(),
                                {to, part_of(std::span(result.gradients), pieces[i].parameters)});
  }
  return result;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace outrigger::nn::testing
