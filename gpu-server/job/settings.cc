#include "gpu-server/job/settings.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "api/write.h"

namespace outrigger::gpu_server {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> kLeftOut = {
    "steps", "epochs", "evaluate", "batchSize", "microBatchSize", "seed", "averageWeights"};

/// Of one object: the names of members that are not the same in both.
void add_changes(const json& former, const json& now, const std::string& place,
                 std::vector<std::string>& changed) {
  std::set<std::string> names;
  for (const json* one : {&former, &now}) {
    for (const auto& [name, value] : one->items()) names.insert(name);
  }
  for (const std::string& name : names) {
    if (former.value(name, json()) != now.value(name, json())) changed.push_back(place + name);
  }
}

json object_in(const json& settings, const char* name) {
  const json found = settings.value(name, json::object());
  return found.is_object() ? found : json::object();
}

}  // namespace

std::string settings_of(const api::TrainingJob& job) {
  const json spec = json(api::to_short_json(job)).value("spec", json::object());
  const json data = object_in(spec, "data");
  json settings{{"training", object_in(spec, "training")}, {"image", object_in(data, "image")}};
  for (const std::string_view name : kLeftOut) settings["training"].erase(std::string(name));
  if (data.contains("augment")) settings["augment"] = data["augment"];
  return settings.dump();
}

std::vector<std::string> changed_settings(const std::string& former, const std::string& now) {
  const json before = json::parse(former, nullptr, false);
  const json after = json::parse(now, nullptr, false);
  std::vector<std::string> changed;
  if (!before.is_object() || !after.is_object()) return changed;
  add_changes(object_in(before, "training"), object_in(after, "training"), "spec.training.",
              changed);
  add_changes(object_in(before, "image"), object_in(after, "image"), "spec.data.image.", changed);
  if (before.value("augment", json()) != after.value("augment", json()))
    changed.emplace_back("spec.data.augment");
  return changed;
}

}  // namespace outrigger::gpu_server
