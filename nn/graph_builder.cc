#include "nn/graph_builder.h"

#include <algorithm>
#include <utility>

#include "common/error.h"
#include "nn/shape_inference.h"

namespace outrigger::nn {
namespace {

template <typename T>
bool is(const Layer& layer) {
  return std::holds_alternative<T>(layer.operation);
}

// Backends run a convolution, its norm and its activation as one pass, and normalise while they
// read the pixels; a cut inside such a group would cost a pass and gain nothing.
bool splits_group(const Layer& before, const Layer& behind) {
  if (is<Normalize>(before)) return true;
  if (is<Relu>(behind) || is<Prelu>(behind)) return true;
  return is<BatchNorm>(behind) && (is<Convolution>(before) || is<Linear>(before));
}

// For each layer, the last one that reads its output; itself where none does.
std::vector<int> last_readers(const std::vector<Layer>& layers) {
  std::vector<int> readers(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    readers[i] = static_cast<int>(i);
    for (const int input : layers[i].inputs)
      readers[static_cast<size_t>(input)] = static_cast<int>(i);
  }
  return readers;
}

std::vector<Cut> legal_cuts(const std::vector<Layer>& layers, const Shape& input) {
  std::vector<Cut> cuts{{0, "Input", input}};
  const std::vector<int> readers = last_readers(layers);
  int furthest = 0;  // the last reader of all that lies before layer i
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    const bool alone = furthest <= static_cast<int>(i);
    furthest = std::max(furthest, readers[i]);
    if (alone && !splits_group(layers[i], layers[i + 1])) {
      cuts.push_back({static_cast<int>(i) + 1, layers[i].name, layers[i].output});
    }
  }
  return cuts;
}

void check_every_layer_is_read(const std::string& graph, const std::vector<Layer>& layers) {
  const std::vector<int> readers = last_readers(layers);
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    if (readers[i] == static_cast<int>(i)) {
      throw InvalidInput("network \"" + graph + "\": nothing reads the output of layer \"" +
                         layers[i].name + "\"");
    }
  }
}

// What enters the last layer with weights, or the group that it belongs to, since programs end only
// where the network can be cut; the network's output where it cannot be cut before that.
int default_embedding(const Graph& graph) {
  const int output = graph.size() - 1;
  if (graph.parameters().empty()) return output;
  const auto last = static_cast<size_t>(graph.parameters().back().layer);
  const int entering = graph.layers()[last].inputs.at(0);
  int embedding = output;
  for (const Cut& cut : graph.cuts()) {
    if (cut.layers > 0 && cut.layers <= entering + 1) embedding = cut.layers - 1;
  }
  return embedding;
}

struct ParameterPlan {
  const char* suffix;
  Shape shape;
  ParameterKind kind;
  bool trainable = true;
};

std::vector<ParameterPlan> plan_parameters(const Operation& operation, const Shape& input) {
  using enum ParameterKind;
  const int64_t channels = input.empty() ? 0 : input.back();
  std::vector<ParameterPlan> plan;
  if (const auto* convolution = std::get_if<Convolution>(&operation)) {
    const int64_t out = convolution->out_channels, kernel = convolution->kernel;
    plan.push_back({"weight", {out, channels / convolution->groups, kernel, kernel}, kWeight});
    if (convolution->bias) plan.push_back({"bias", {out}, kBias});
  } else if (const auto* norm = std::get_if<BatchNorm>(&operation)) {
    plan.push_back({"weight", {channels}, kNormScale, norm->train_scale});
    plan.push_back({"bias", {channels}, kNormShift});
  } else if (std::holds_alternative<Prelu>(operation)) {
    plan.push_back({"weight", {channels}, kSlope});
  } else if (const auto* linear = std::get_if<Linear>(&operation)) {
    plan.push_back({"weight", {linear->out_features, channels}, kWeight});
    if (linear->bias) plan.push_back({"bias", {linear->out_features}, kBias});
  } else if (const auto* arcface = std::get_if<ArcFace>(&operation)) {
    plan.push_back({"weight", {arcface->classes, channels}, kWeight});
  }
  return plan;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name, Shape input) {
  graph_.name_ = std::move(name);
  graph_.input_ = std::move(input);
  if (graph_.input_.size() != 3 || std::any_of(graph_.input_.begin(), graph_.input_.end(),
                                               [](int64_t size) { return size < 1; })) {
    throw InvalidInput("network \"" + graph_.name_ +
                       "\": the input must be {height, width, channels}, each at least 1, and is " +
                       to_string(graph_.input_));
  }
}

int GraphBuilder::add(const std::string& name, Operation operation, std::vector<int> inputs) {
  auto& layers = graph_.layers_;
  const int index = static_cast<int>(layers.size());
  const auto same_name = [&](const Layer& layer) { return layer.name == name; };
  if (name.empty() || name == "Input" || std::any_of(layers.begin(), layers.end(), same_name)) {
    throw InvalidInput("network \"" + graph_.name_ + "\": layer name \"" + name +
                       "\" is empty, taken or reserved");
  }
  if ((index == 0) != std::holds_alternative<Normalize>(operation)) {
    throw InvalidInput("layer \"" + name + "\": the first layer, and only that, must be Normalize");
  }
  if (!layers.empty() && is<ArcFace>(layers.back())) {
    throw InvalidInput("layer \"" + name + "\": nothing may follow ArcFace");
  }
  if (inputs.empty() && index > 0) inputs.push_back(index - 1);
  std::vector<Shape> shapes;
  if (index == 0) shapes.push_back(graph_.input_);
  for (const int input : inputs) {
    if (input < 0 || input >= index) {
      throw InvalidInput("layer \"" + name + "\": input " + std::to_string(input) +
                         " is no earlier layer");
    }
    shapes.push_back(layers[static_cast<size_t>(input)].output);
  }
  Layer layer;
  layer.name = name;
  layer.output = infer_shape(name, operation, shapes);
  layer.inputs = std::move(inputs);
  layer.operation = std::move(operation);

  for (ParameterPlan& plan : plan_parameters(layer.operation, shapes[0])) {
    layer.parameters.push_back(static_cast<int>(graph_.parameters_.size()));
    const int64_t offset = graph_.parameters_.empty() ? 0 : graph_.parameters_.back().range.end();
    const int64_t size = element_count(plan.shape);
    graph_.parameters_.push_back({name + "." + plan.suffix,
                                  std::move(plan.shape),
                                  plan.kind,
                                  {offset, size},
                                  index,
                                  plan.trainable});
  }
  if (const auto* norm = std::get_if<BatchNorm>(&layer.operation)) {
    layer.buffer = static_cast<int>(graph_.buffers_.size());
    const int64_t offset = graph_.buffers_.empty() ? 0 : graph_.buffers_.back().range.end();
    const int64_t channels = layer.output.back();
    graph_.buffers_.push_back({name,
                               channels,
                               {offset, 2 * channels},
                               index,
                               norm->momentum,
                               element_count(layer.output) / channels});
  }
  layers.push_back(std::move(layer));
  return index;
}

void GraphBuilder::mark_embedding(int layer) {
  ensure(layer >= 0 && layer < graph_.size(), "an embedding is one of the layers");
  embedding_ = layer;
}

void GraphBuilder::freeze_until(const std::string& name) {
  int last = -1;
  for (int i = 0; i < graph_.size(); ++i) {
    const std::string& layer = graph_.layers_[static_cast<size_t>(i)].name;
    if (layer == name || layer.starts_with(name + ".")) last = i;
  }
  if (last < 0) {
    std::string names;
    for (const Layer& layer : graph_.layers_) names += (names.empty() ? "" : ", ") + layer.name;
    throw InvalidInput("cannot freeze " + graph_.name_ + " until \"" + name +
                       "\": there is no such layer; its layers are " + names);
  }
  check_leaves_something(last, name);
  freeze_first(last + 1);
}

void GraphBuilder::check_leaves_something(int last, const std::string& name) const {
  int trained = -1;
  for (const Parameter& parameter : graph_.parameters_) {
    if (parameter.trainable) trained = std::max(trained, parameter.layer);
  }
  if (trained < 0 || trained > last) return;
  throw InvalidInput(
      "cannot freeze " + graph_.name_ + " until \"" + name +
      "\": nothing would be left to train; the last layer that leaves something is " +
      graph_.layers_[static_cast<size_t>(trained - 1)].name);
}

void GraphBuilder::freeze_first(int count) {
  for (int i = 0; i < count; ++i) graph_.layers_[static_cast<size_t>(i)].frozen = true;
  for (Parameter& parameter : graph_.parameters_) {
    if (parameter.layer < count) parameter.trainable = false;
  }
}

Graph GraphBuilder::build() {
  if (graph_.layers_.empty()) throw InvalidInput("network \"" + graph_.name_ + "\" has no layers");
  check_every_layer_is_read(graph_.name_, graph_.layers_);
  graph_.cuts_ = legal_cuts(graph_.layers_, graph_.input_);
  graph_.embedding_layer_ = embedding_ ? *embedding_ : default_embedding(graph_);
  return graph_;
}

Graph without_last_layer(const Graph& graph) {
  ensure(graph.size() > 1, "a network has a layer before its last");
  GraphBuilder builder(graph.name(), graph.input());
  const auto layers = graph.layers().first(static_cast<size_t>(graph.size() - 1));
  int frozen = 0;
  for (const Layer& layer : layers) {
    const int index = builder.add(layer.name, layer.operation, layer.inputs);
    if (layer.frozen) frozen = index + 1;
  }
  builder.freeze_first(frozen);
  builder.mark_embedding(graph.size() - 2);
  return builder.build();
}

}  // namespace outrigger::nn
