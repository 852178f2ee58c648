#include "nn/weights_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "common/error.h"
#include "nn/safetensors.h"

namespace outrigger::nn {
namespace {

constexpr const char* kBatchesTracked = ".num_batches_tracked";

// One tensor of the format and the floats of the arenas that hold it; T is const where they are
// only read.
template <typename T>
struct Place {
  std::string name;
  Shape shape;
  std::span<T> values;
  int layer;
};

// Every float tensor of the graph, parameters first.
template <typename T>
std::vector<Place<T>> places_of(const Graph& graph, std::span<T> parameters, std::span<T> buffers) {
  ensure(parameters.size() == static_cast<size_t>(graph.parameter_count()) &&
             buffers.size() == static_cast<size_t>(graph.buffer_count()),
         "arenas have the model's sizes");
  std::vector<Place<T>> places;
  for (const Parameter& parameter : graph.parameters()) {
    const auto offset = static_cast<size_t>(parameter.range.offset);
    const auto values = parameters.subspan(offset, static_cast<size_t>(parameter.range.size));
    places.push_back({parameter.name, parameter.shape, values, parameter.layer});
  }
  for (const NormBuffer& buffer : graph.buffers()) {
    const auto offset = static_cast<size_t>(buffer.range.offset);
    const auto channels = static_cast<size_t>(buffer.channels);
    const auto mean = buffers.subspan(offset, channels);
    const auto variance = buffers.subspan(offset + channels, channels);
    places.push_back({buffer.name + ".running_mean", {buffer.channels}, mean, buffer.layer});
    places.push_back({buffer.name + ".running_var", {buffer.channels}, variance, buffer.layer});
  }
  return places;
}

std::string list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

bool inside(const Segment& segment, int layer) {
  return layer >= segment.begin && layer < segment.end;
}

std::string layer_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

// True for a tensor of the graph's head, or of a head that another graph of the same backbone has.
bool belongs_to_head(const Graph& graph, const std::string& tensor) {
  constexpr std::array kHeadNames{"head", "fc", "fc3"};
  const std::string name = layer_of(tensor);
  for (int i = 0; i < graph.size(); ++i) {
    if (graph.layers()[static_cast<size_t>(i)].name == name) return !inside(backbone(graph), i);
  }
  return std::find(kHeadNames.begin(), kHeadNames.end(), name) != kHeadNames.end();
}

class Loader {
 public:
  Loader(const std::filesystem::path& path, const Graph& graph, const LoadWeightsOptions& options)
      : file_(path), graph_(graph), options_(options) {}

  LoadedWeights load(std::span<float> parameters, std::span<float> buffers) const {
    auto places = places_of(graph_, parameters, buffers);
    if (options_.replace_head) {
      std::erase_if(places,
                    [&](const auto& place) { return !inside(backbone(graph_), place.layer); });
    }
    LoadedWeights loaded;
    check_names(places, loaded);
    for (const auto& place : places) load_tensor(place);
    return loaded;
  }

 private:
  void check_names(const std::vector<Place<float>>& places, LoadedWeights& loaded) const {
    std::vector<std::string> missing, unexpected;
    std::set<std::string> wanted, norms;
    for (const auto& place : places) {
      wanted.insert(place.name);
      if (file_.find(place.name) == nullptr) missing.push_back(place.name);
    }
    for (const NormBuffer& buffer : graph_.buffers()) norms.insert(buffer.name + kBatchesTracked);
    for (const StoredTensor& tensor : file_.tensors()) {
      if (norms.contains(tensor.name)) {
        for (const int64_t count : file_.read_integers(tensor)) {
          loaded.batches_tracked = std::max(loaded.batches_tracked, count);
        }
      } else if (options_.replace_head && belongs_to_head(graph_, tensor.name)) {
        loaded.skipped.push_back(tensor.name);
      } else if (!wanted.contains(tensor.name)) {
        unexpected.push_back(tensor.name);
      }
    }
    if (missing.empty() && unexpected.empty()) return;
    std::string text = file_.path().string() + ": these are not the weights of " + graph_.name();
    if (!missing.empty()) text += "; missing: " + list(missing);
    if (!unexpected.empty()) text += "; not in the model: " + list(unexpected);
    const auto of_head = [&](const std::string& name) { return belongs_to_head(graph_, name); };
    if (std::all_of(missing.begin(), missing.end(), of_head) &&
        std::all_of(unexpected.begin(), unexpected.end(), of_head)) {
      text += "; only the head differs: replaceHead leaves it as it is initialised";
    }
    throw InvalidInput(text);
  }

  void load_tensor(const Place<float>& place) const {
    const StoredTensor& tensor = *file_.find(place.name);
    if (tensor.shape != place.shape) {
      throw InvalidInput(file_.path().string() + ": tensor \"" + place.name + "\" has shape " +
                         to_string(tensor.shape) + ", and " + graph_.name() + " needs " +
                         to_string(place.shape) +
                         (belongs_to_head(graph_, place.name)
                              ? "; replaceHead leaves the head as it is initialised"
                              : ""));
    }
    file_.read(tensor, place.values);
    const auto bad = std::find_if(place.values.begin(), place.values.end(),
                                  [](float value) { return !std::isfinite(value); });
    if (bad != place.values.end()) {
      throw InvalidInput(file_.path().string() + ": tensor \"" + place.name + "\" holds " +
                         std::to_string(*bad) + " at element " +
                         std::to_string(bad - place.values.begin()));
    }
  }

  const SafetensorsReader file_;
  const Graph& graph_;
  const LoadWeightsOptions options_;
};

}  // namespace

Segment backbone(const Graph& graph) { return {0, graph.embedding_layer() + 1}; }

void save_weights(const std::filesystem::path& path, const Graph& graph, Segment segment,
                  const SavedWeights& weights, const std::map<std::string, std::string>& metadata) {
  auto places = places_of(graph, weights.parameters, weights.buffers);
  std::erase_if(places, [&](const auto& place) { return !inside(segment, place.layer); });

  std::vector<PlannedTensor> plan;
  for (const NormBuffer& buffer : graph.buffers()) {
    if (inside(segment, buffer.layer))
      plan.push_back({buffer.name + kBatchesTracked, ElementType::kInt64, {}});
  }
  const size_t norms = plan.size();
  for (const auto& place : places) plan.push_back({place.name, ElementType::kFloat32, place.shape});

  std::map<std::string, std::string> all_metadata = metadata;
  all_metadata["format"] = "pt";
  SafetensorsWriter writer(path, std::move(plan), all_metadata);
  for (size_t i = 0; i < norms; ++i)
    writer.write(std::as_bytes(std::span(&weights.batches_tracked, 1)));
  for (const auto& place : places) writer.write(std::as_bytes(place.values));
  writer.finish();
}

LoadedWeights load_weights(const std::filesystem::path& path, const Graph& graph,
                           const LoadWeightsOptions& options, std::span<float> parameters,
                           std::span<float> buffers) {
  return Loader(path, graph, options).load(parameters, buffers);
}

}  // namespace outrigger::nn
