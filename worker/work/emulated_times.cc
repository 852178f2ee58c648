#include "worker/work/emulated_times.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::worker {
namespace {

using nlohmann::json;

double seconds_of(const json& object, const char* field, const std::string& where) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number() || found->get<double>() < 0 ||
      !std::isfinite(found->get<double>()))
    throw InvalidInput(where + "." + field + ": a number from 0 is needed");
  return found->get<double>();
}

int64_t count_of(const json& object, const char* field, int64_t least, const std::string& where) {
  const double count = seconds_of(object, field, where);
  if (count < static_cast<double>(least) || count != std::floor(count) || count > 2e9)
    throw InvalidInput(where + "." + field + ": a whole number from " + std::to_string(least) +
                       " is needed");
  return static_cast<int64_t>(count);
}

std::vector<EmulatedTimes::Layer> read_layers(const json& object, const std::string& name) {
  const auto list = object.find("layers");
  if (list == object.end() || !list->is_array() || list->empty())
    throw InvalidInput(name + ": profile.layers: a list is needed");
  std::vector<EmulatedTimes::Layer> layers;
  for (const json& layer : *list) {
    const std::string where = name + ": profile.layers[" + std::to_string(layers.size()) + "]";
    if (!layer.is_object() || !layer.contains("name") || !layer["name"].is_string())
      throw InvalidInput(where + ".name: text is needed");
    layers.push_back({layer["name"].get<std::string>(), seconds_of(layer, "forward", where),
                      seconds_of(layer, "backward", where)});
  }
  return layers;
}

/// Empty where the device of the profile was cores.
std::vector<EmulatedTimes::Cut> read_cuts(const json& object, const std::string& name) {
  std::vector<EmulatedTimes::Cut> cuts;
  for (const json& cut : object.value("cuts", json::array())) {
    const std::string where = name + ": profile.cuts[" + std::to_string(cuts.size()) + "]";
    if (!cut.is_object()) throw InvalidInput(where + ": an object is needed");
    if (!cut.contains("deviceStem")) return {};
    cuts.push_back({static_cast<int32_t>(count_of(cut, "layers", 0, where)),
                    seconds_of(cut, "head", where), seconds_of(cut, "deviceStem", where)});
  }
  if (!cuts.empty() && cuts.front().layers != 0)
    throw InvalidInput(name + ": profile.cuts[0].layers: 0 is needed, of cut Input");
  return cuts;
}

}  // namespace

double EmulatedTimes::pass_seconds(int32_t cut) const {
  double sum = 0;
  for (size_t i = 0; i < std::min(layers.size(), static_cast<size_t>(cut)); ++i)
    sum += layers[i].forward + layers[i].backward;
  return sum;
}

EmulatedTimes::Pass EmulatedTimes::on_cores(nn::Segment segment, const nn::Graph& graph) const {
  const auto measured = static_cast<int32_t>(layers.size());
  const auto sum = [this](int32_t begin, int32_t end) {
    Pass pass;
    for (int32_t i = begin; i < end; ++i) {
      pass.forward += layers[static_cast<size_t>(i)].forward;
      pass.backward += layers[static_cast<size_t>(i)].backward;
    }
    return pass;
  };
  Pass pass = sum(segment.begin, std::min(segment.end, measured));
  if (segment.end <= measured) return pass;
  const Pass all = sum(0, measured);
  const double known = std::max<double>(1, static_cast<double>(graph.multiply_adds({0, measured})));
  const nn::Segment rest{std::max(segment.begin, measured), segment.end};
  const double part = static_cast<double>(graph.multiply_adds(rest)) / known;
  return {pass.forward + part * all.forward, pass.backward + part * all.backward};
}

// A backward pass computes two gradients for each map of a forward pass.
EmulatedTimes::Pass EmulatedTimes::on_device(nn::Segment segment, const nn::Graph& graph) const {
  if (!of_gpu()) return on_cores(segment, graph);
  const bool is_head = segment.end == graph.size();
  const int32_t at = is_head ? segment.begin : segment.end;
  const auto cut = std::ranges::find(cuts, at, &Cut::layers);
  if (cut == cuts.end() || (!is_head && segment.begin != 0))
    throw InvalidInput("the profile to emulate has no times of a GPU for the cut behind '" +
                       graph.layers()[static_cast<size_t>(at) - 1].name + "'");
  const double seconds = is_head ? cut->head : cut->stem;
  return {seconds / 3, seconds * 2 / 3};
}

void EmulatedTimes::check(const nn::Graph& graph) const {
  const auto same = [](const Layer& timed, const nn::Layer& layer) {
    return layer.name == timed.name;
  };
  const size_t size = graph.layers().size();
  const bool complete = of_gpu() ? layers.size() <= size : layers.size() == size;
  if (complete && std::ranges::equal(layers, graph.layers().first(layers.size()), same)) return;
  throw InvalidInput("the profile to emulate is of another network: it has " +
                     std::to_string(layers.size()) + " layers, this one (" + graph.name() + ") " +
                     std::to_string(size) + ", or they have other names");
}

EmulatedTimes read_emulated_times(const std::filesystem::path& profile) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  const std::string name = profile.string();
  const json parsed = json::parse(read_file(profile, kMostBytes), nullptr, false);
  if (!parsed.is_object())
    throw InvalidInput(name + ": is no JSON object; `outrigger plan job.yaml -o json` writes one");
  const json& object = parsed.contains("profile") ? parsed["profile"] : parsed;
  return {.layers = read_layers(object, name),
          .cuts = read_cuts(object, name),
          .optimizer = object.contains("optimizer") ? seconds_of(object, "optimizer", name) : 0,
          .decode = seconds_of(object, "decode", name + ": profile"),
          .micro_batch = count_of(object, "microBatch", 1, name + ": profile")};
}

}  // namespace outrigger::worker
