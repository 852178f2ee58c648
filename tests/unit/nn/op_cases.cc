#include "op_cases.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/random.h"
#include "nn/graph_builder.h"

namespace outrigger::nn::testing {
namespace {

using Json = nlohmann::json;

template <typename Pool>
Pool parse_pool(const Json& layer) {
  return {layer.at("kernel"), layer.at("stride"), layer.value("padding", int64_t{0})};
}

Operation parse_operation(const Json& layer) {
  const std::string op = layer.at("op");
  if (op == "convolution") {
    return Convolution{layer.at("out"),
                       layer.at("kernel"),
                       layer.value("stride", int64_t{1}),
                       layer.value("padding", int64_t{0}),
                       layer.value("groups", int64_t{1}),
                       layer.value("bias", false)};
  }
  if (op == "batch_norm") return BatchNorm{.train_scale = layer.value("train_scale", true)};
  if (op == "relu") return Relu{};
  if (op == "prelu") return Prelu{};
  if (op == "add") return Add{};
  if (op == "max_pool") return parse_pool<MaxPool>(layer);
  if (op == "average_pool") return parse_pool<AveragePool>(layer);
  if (op == "global_average_pool") return GlobalAveragePool{};
  if (op == "flatten") return Flatten{};
  if (op == "linear") return Linear{layer.at("out"), layer.at("bias")};
  if (op == "dropout") return Dropout{layer.at("probability")};
  if (op == "arcface") return ArcFace{layer.at("classes"), layer.at("margin"), layer.at("scale")};
  throw InvalidInput("op_cases.json: unknown op " + op);
}

OpCase parse_case(const Json& json) {
  OpCase op_case;
  op_case.name = json.at("name");
  op_case.batch = json.at("batch");
  op_case.draw = json.value("draw", uint64_t{0});
  op_case.torch = json.value("torch", true);
  const Shape input = json.at("input");
  GraphBuilder builder(op_case.name, input);
  const std::vector<float> ones(static_cast<size_t>(input[2]), 1.0f);
  builder.add("normalize", Normalize{ones, ones});
  builder.add("input", Dropout{0.0f});
  int index = 2;
  for (const Json& layer : json.at("layers")) {
    builder.add(std::to_string(index++), parse_operation(layer),
                layer.value("inputs", std::vector<int>{}));
  }
  op_case.graph = std::make_shared<const Graph>(builder.build());
  op_case.segment = {op_case.graph->cut("input").layers, op_case.graph->size()};
  return op_case;
}

std::vector<float> draw(RandomStream& random, int64_t count, double deviation, double mean = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(mean + deviation * random.normal());
  return values;
}

double deviation_of(const Parameter& parameter) {
  if (parameter.kind != ParameterKind::kWeight) return 0.3;
  const int64_t inputs = element_count(parameter.shape) / parameter.shape[0];
  return 1.0 / std::sqrt(static_cast<double>(inputs));
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    const char* copied = std::getenv("OUTRIGGER_SOURCE_DIR");  // of a build on another machine
    const std::string path = std::string(copied != nullptr ? copied : OUTRIGGER_SOURCE_DIR) +
                             "/tests/unit/nn/op_cases.json";
    std::vector<OpCase> parsed;
    for (const Json& json : Json::parse(read_file(path))) parsed.push_back(parse_case(json));
    return parsed;
  }();
  return cases;
}

OpValues draw_values(const OpCase& op_case) {
  const Graph& graph = *op_case.graph;
  const Sha256 digest = sha256(std::as_bytes(std::span(op_case.name)));
  uint64_t seed = 0;
  std::memcpy(&seed, digest.data(), sizeof seed);
  RandomStream random(seed, RandomUse::kSyntheticData, op_case.draw);

  OpValues values;
  for (const Parameter& parameter : graph.parameters()) {
    const bool around_one = parameter.kind == ParameterKind::kNormScale && parameter.trainable;
    const bool fixed = parameter.kind == ParameterKind::kNormScale && !parameter.trainable;
    const auto drawn = draw(random, parameter.range.size, fixed ? 0 : deviation_of(parameter),
                            around_one || fixed ? 1 : 0);
    values.parameters.insert(values.parameters.end(), drawn.begin(), drawn.end());
  }
  for (const NormBuffer& buffer : graph.buffers()) {
    const auto mean = draw(random, buffer.channels, 0.3);
    values.buffers.insert(values.buffers.end(), mean.begin(), mean.end());
    for (int64_t c = 0; c < buffer.channels; ++c) values.buffers.push_back(0.5f + random.uniform());
  }
  values.input = draw(random, op_case.batch * element_count(graph.input()), 1);
  const Shape output = graph.layers().back().output;
  values.output_gradient = draw(random, op_case.batch * element_count(output), 1);
  for (int64_t n = 0; n < op_case.batch; ++n) {
    values.labels.push_back(
        static_cast<int32_t>(random.below(static_cast<uint32_t>(output.back()))));
    values.slots.push_back(random.next_u64());
  }
  return values;
}

namespace {

Tensor stored(const TensorSpec& spec, const std::vector<float>& values) {
  ensure(static_cast<size_t>(element_count(spec.shape)) == values.size(),
         "a case's values fill its tensors");
  Tensor tensor(spec.type, spec.shape);
  if (spec.type == ElementType::kFloat32) {
    std::ranges::copy(values, tensor.as<float>().begin());
  } else {
    std::ranges::transform(values, tensor.as<uint16_t>().begin(), to_bfloat16);
  }
  return tensor;
}

std::vector<float> values_of(Tensor& tensor) {
  if (tensor.type() == ElementType::kFloat32) {
    const auto all = tensor.as<float>();
    return {all.begin(), all.end()};
  }
  std::vector<float> values;
  for (const uint16_t half : tensor.as<uint16_t>()) values.push_back(from_bfloat16(half));
  return values;
}

}  // namespace

OpResult run_case(const Backend& backend, ThreadPool& threads, const OpCase& op_case,
                  const OpValues& values, Precision precision) {
  const Graph& graph = *op_case.graph;
  ProgramOptions options;
  options.segment = op_case.segment;
  options.batch = op_case.batch;
  options.input_gradient = true;
  options.seed = 11;
  options.precision = precision;

  OpResult result;
  result.statistics.resize(static_cast<size_t>(graph.buffer_range(op_case.segment).size));
  result.gradients.resize(values.parameters.size());
  for (const Mode mode : {Mode::kTraining, Mode::kInference}) {
    const bool training = mode == Mode::kTraining;
    options.mode = mode;
    options.input_gradient = training;
    const auto program = backend.compile(graph, options, threads);
    const auto weights = program->new_weights();
    program->load(*weights, values.parameters, values.buffers);
    const auto tape = program->new_tape();
    const Tensor input = stored(program->input_spec(), values.input);
    Tensor output(program->output_spec().type, program->output_spec().shape);
    ForwardInput in{input.view(), op_case.batch, {}, {}};
    if (training) {
      in.slots = values.slots;
      in.labels = values.labels;
    }
    program->forward(*weights, *tape, in, {output.view(), result.statistics});
    (training ? result.output : result.inference) = values_of(output);
    if (!training) continue;
    const Tensor gradient = stored(program->output_spec(), values.output_gradient);
    Tensor input_gradient(program->input_spec().type, program->input_spec().shape);
    program->backward(*weights, *tape, gradient.view(), {input_gradient.view(), result.gradients});
    result.input_gradient = values_of(input_gradient);
  }
  return result;
}

std::string test_name(const OpCase& op_case) {
  std::string name = op_case.name;
  name.erase(std::remove(name.begin(), name.end(), ','), name.end());
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

}  // namespace outrigger::nn::testing
