#include "nn/graph.h"

#include <algorithm>
#include <iterator>

#include "common/error.h"
#include "common/nearest.h"

namespace outrigger::nn {
namespace {

bool starts_with_stage(const std::string& layer, const std::string& stage) {
  return layer.size() > stage.size() + 1 && layer.starts_with(stage) && layer[stage.size()] == '.';
}

std::string join_names(std::span<const Cut> cuts) {
  std::string text;
  for (const Cut& cut : cuts) text += (text.empty() ? "" : ", ") + cut.name;
  return text;
}

int64_t layer_multiply_adds(const Layer& layer, const std::vector<Parameter>& parameters) {
  if (std::holds_alternative<Convolution>(layer.operation)) {
    const int64_t weights = parameters[static_cast<size_t>(layer.parameters[0])].range.size;
    return layer.output[0] * layer.output[1] * weights;
  }
  if (std::holds_alternative<Linear>(layer.operation) ||
      std::holds_alternative<ArcFace>(layer.operation)) {
    return parameters[static_cast<size_t>(layer.parameters[0])].range.size;
  }
  return 0;
}

// The range that the pieces in [begin, end) of a list in layer order cover.
template <typename Piece>
Range covered(const std::vector<Piece>& pieces, Segment segment) {
  const auto before = [](const Piece& piece, int layer) { return piece.layer < layer; };
  const auto first = std::lower_bound(pieces.begin(), pieces.end(), segment.begin, before);
  const auto last = std::lower_bound(first, pieces.end(), segment.end, before);
  const int64_t offset = first == pieces.begin() ? 0 : std::prev(first)->range.end();
  const int64_t end = last == pieces.begin() ? 0 : std::prev(last)->range.end();
  return {offset, end - offset};
}

}  // namespace

Range Graph::parameter_range(Segment segment) const { return covered(parameters_, segment); }

Range Graph::buffer_range(Segment segment) const { return covered(buffers_, segment); }

namespace {

/// What somebody may have meant who named a place that is no cut.
std::string nearest_cuts(std::span<const Cut> cuts, std::span<const Layer> layers,
                         const std::string& name, int wanted) {
  if (wanted < 0) {
    std::vector<std::string> names;
    for (const Layer& layer : layers) {
      names.push_back(layer.name.substr(0, layer.name.find('.')));  // its stage, which can be cut
      names.push_back(layer.name);
    }
    const auto meant = nearest(name, names);
    return meant ? "; did you mean \"" + *meant + "\"?" : "";
  }
  const auto behind =
      std::ranges::find_if(cuts, [&](const Cut& cut) { return cut.layers > wanted; });
  std::string text = "; the nearest that works is \"" + std::prev(behind)->name + "\" before it";
  if (behind != cuts.end()) text += ", or \"" + behind->name + "\" behind it";
  return text;
}

}  // namespace

const Cut& Graph::cut(const std::string& name) const {
  int wanted = -1;
  if (name == cuts_.front().name) wanted = 0;
  for (int i = 0; wanted < 0 && i < size(); ++i) {
    if (layers_[static_cast<size_t>(i)].name == name) wanted = i + 1;
  }
  if (wanted < 0) {
    for (int i = 0; i < size(); ++i) {
      if (starts_with_stage(layers_[static_cast<size_t>(i)].name, name)) wanted = i + 1;
    }
  }
  for (const Cut& cut : cuts_) {
    if (cut.layers == wanted) return cut;
  }
  const char* why =
      "more than one tensor crosses there, or a group of layers that run as one would be split";
  if (wanted < 0) why = "there is no such layer";
  if (wanted == size()) why = "it is the last layer, behind which nothing is left for the server";
  throw InvalidInput("cannot cut " + name_ + " at \"" + name + "\": " + why +
                     nearest_cuts(cuts_, layers_, name, wanted) + "; it can be cut at " +
                     join_names(cuts_));
}

const Cut& Graph::cut_at(int layers) const {
  for (const Cut& cut : cuts_) {
    if (cut.layers == layers) return cut;
  }
  throw InvalidInput("cannot cut " + name_ + " behind " + std::to_string(layers) +
                     " layers; it can be cut at " + join_names(cuts_));
}

int64_t Graph::multiply_adds(Segment segment) const {
  int64_t sum = 0;
  for (int i = segment.begin; i < segment.end; ++i) {
    sum += layer_multiply_adds(layers_[static_cast<size_t>(i)], parameters_);
  }
  return sum;
}

bool Graph::frozen_before(int layers) const {
  return std::all_of(layers_.begin(), layers_.begin() + layers,
                     [](const Layer& layer) { return layer.frozen; });
}

}  // namespace outrigger::nn
