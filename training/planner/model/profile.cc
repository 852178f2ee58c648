#include "training/planner/model/profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/error.h"
#include "nn/cpu/blocks.h"

namespace outrigger::training {
namespace {

using nlohmann::json;

/// Reads members and says which one is wrong.
class Fields {
 public:
  Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) throw InvalidInput(path_ + ": an object is needed");
  }
  const json& at(const char* field) const {
    const auto found = object_.find(field);
    if (found == object_.end()) throw InvalidInput(path_ + "." + field + ": missing");
    return *found;
  }
  double number(const char* field) const {
    const json& value = at(field);
    if (!value.is_number() || value.get<double>() < 0 || !std::isfinite(value.get<double>()))
      throw InvalidInput(path_ + "." + field + ": " + value.dump() +
                         " is not allowed; a number from 0 is needed");
    return value.get<double>();
  }
  std::optional<double> optional_number(const char* field) const {
    return has(field) ? std::optional(number(field)) : std::nullopt;
  }
  template <typename Integer>
  Integer integer(const char* field) const {
    const double value = number(field);
    if (value != std::floor(value) || value > 2e9)
      throw InvalidInput(path_ + "." + field + ": a whole number up to 2e9 is needed");
    return static_cast<Integer>(value);
  }
  std::string text(const char* field) const {
    const json& value = at(field);
    if (!value.is_string()) throw InvalidInput(path_ + "." + field + ": text is needed");
    return value.get<std::string>();
  }
  bool flag(const char* field) const {
    const json& value = at(field);
    if (!value.is_boolean()) throw InvalidInput(path_ + "." + field + ": true or false is needed");
    return value.get<bool>();
  }
  bool has(const char* field) const { return object_.contains(field); }
  Fields object(const char* field) const { return {at(field), path_ + "." + field}; }
  /// Calls `read` with the fields of every object in a list.
  template <typename Read>
  void each(const char* field, const Read& read) const {
    const json& list = at(field);
    if (!list.is_array()) throw InvalidInput(path_ + "." + field + ": a list is needed");
    for (size_t i = 0; i < list.size(); ++i)
      read(Fields(list[i], path_ + "." + field + "[" + std::to_string(i) + "]"));
  }

 private:
  const json& object_;
  const std::string path_;
};

json to_object(const CutCosts& cut) {
  json object{{"layers", cut.cut},
              {"name", cut.name},
              {"trains", cut.trains},
              {"stemForward", cut.stem_forward},
              {"stemBackward", cut.stem_backward},
              {"head", cut.head},
              {"activations", cut.activations},
              {"gradients", cut.gradients},
              {"weights", cut.weights},
              {"serverPercent", cut.server_percent},
              {"stemKept", cut.stem_kept},
              {"stemFixed", cut.stem_fixed},
              {"headKept", cut.head_kept},
              {"headFixed", cut.head_fixed},
              {"crossing", cut.crossing}};
  if (cut.device_stem) object["deviceStem"] = *cut.device_stem;
  return object;
}

CutCosts read_cut(const Fields& fields) {
  return {.cut = fields.integer<int32_t>("layers"),
          .name = fields.text("name"),
          .trains = fields.flag("trains"),
          .stem_forward = fields.number("stemForward"),
          .stem_backward = fields.number("stemBackward"),
          .head = fields.number("head"),
          .activations = fields.number("activations"),
          .gradients = fields.number("gradients"),
          .weights = fields.number("weights"),
          .server_percent = fields.number("serverPercent"),
          .stem_kept = fields.number("stemKept"),
          .stem_fixed = fields.number("stemFixed"),
          .head_kept = fields.number("headKept"),
          .head_fixed = fields.number("headFixed"),
          .crossing = fields.number("crossing"),
          .device_stem = fields.optional_number("deviceStem")};
}

json to_object(const LinkWork& work) {
  return {{"frame", work.frame},
          {"byte", work.byte},
          {"activations", work.activations},
          {"gradients", work.gradients}};
}

LinkWork read_link_work(const Fields& fields) {
  return {.frame = fields.number("frame"),
          .byte = fields.number("byte"),
          .activations = fields.number("activations"),
          .gradients = fields.number("gradients")};
}

}  // namespace

double cores_at_work(uint32_t block_samples, uint32_t micro_batch, double cores) {
  if (block_samples == 0) return cores;
  const auto blocks = nn::cpu::blocks_of(block_samples, micro_batch);
  const auto threads = static_cast<int>(std::clamp<double>(std::ceil(cores), 1, blocks.count()));
  return std::min(cores, micro_batch / static_cast<double>(blocks.of_busiest(threads)));
}

std::string to_json(const Profile& profile) {
  const JobCosts& costs = profile.costs;
  json cuts = json::array();
  for (const CutCosts& cut : costs.cuts) cuts.push_back(to_object(cut));
  json layers = json::array();
  for (const LayerCosts& layer : costs.layers)
    layers.push_back({{"name", layer.name},
                      {"forward", layer.forward},
                      {"backward", layer.backward},
                      {"kept", layer.kept},
                      {"weights", layer.weights}});
  json object{{"samples", profile.samples},
              {"batch", profile.batch},
              {"microBatch", profile.micro_batch},
              {"microBatches", costs.micro_batches},
              {"staleness", costs.staleness},
              {"decode", profile.decode},
              {"blockSamples", profile.block_samples},
              {"pixels", costs.pixels},
              {"optimizer", costs.optimizer},
              {"parameters", costs.parameters},
              {"copies", costs.copies},
              {"linkWork", to_object(costs.link_work)},
              {"leastServerPercent", profile.options.least_server_percent},
              {"cuts", cuts},
              {"layers", layers}};
  if (profile.options.cut) object["fixedCut"] = *profile.options.cut;
  if (profile.options.away) object["fixedAway"] = *profile.options.away;
  if (std::isfinite(profile.options.most_bytes_per_second))
    object["mostBytesPerSecond"] = profile.options.most_bytes_per_second;
  return object.dump();
}

Profile read_profile(const std::string& text, const std::string& name) {
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object())
    throw InvalidInput(name + ": is no JSON object; `outrigger plan job.yaml -o json` writes one");
  const Fields fields(parsed.contains("profile") ? parsed["profile"] : parsed, name + ": profile");
  Profile profile;
  profile.samples = fields.integer<uint64_t>("samples");
  profile.batch = fields.integer<uint32_t>("batch");
  profile.micro_batch = fields.integer<uint32_t>("microBatch");
  profile.decode = fields.number("decode");
  if (fields.has("blockSamples")) profile.block_samples = fields.integer<uint32_t>("blockSamples");
  JobCosts& costs = profile.costs;
  costs.micro_batches = fields.integer<uint32_t>("microBatches");
  costs.staleness = fields.integer<uint64_t>("staleness");
  costs.pixels = fields.number("pixels");
  costs.optimizer = fields.number("optimizer");
  costs.parameters = fields.number("parameters");
  costs.copies = fields.number("copies");
  if (fields.has("linkWork")) costs.link_work = read_link_work(fields.object("linkWork"));
  fields.each("cuts", [&](const Fields& cut) { costs.cuts.push_back(read_cut(cut)); });
  fields.each("layers", [&](const Fields& layer) {
    costs.layers.push_back({layer.text("name"), layer.number("forward"), layer.number("backward"),
                            layer.number("kept"), layer.number("weights")});
  });
  profile.options.least_server_percent = fields.number("leastServerPercent");
  if (fields.has("fixedCut")) profile.options.cut = fields.integer<size_t>("fixedCut");
  if (const auto most = fields.optional_number("mostBytesPerSecond"))
    profile.options.most_bytes_per_second = *most;
  if (fields.has("fixedAway")) profile.options.away = fields.integer<uint32_t>("fixedAway");
  if (costs.cuts.empty() || costs.cuts.front().cut != 0)
    throw InvalidInput(name + ": profile.cuts: the first must be Input, with 0 layers");
  if (costs.micro_batches == 0 || profile.batch == 0 || profile.micro_batch == 0)
    throw InvalidInput(name + ": profile: batch, microBatch and microBatches must be at least 1");
  return profile;
}

}  // namespace outrigger::training
