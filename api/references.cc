#include "api/references.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "api/names.h"
#include "api/schema/scalar.h"

namespace outrigger::api {
namespace {

using schema::in_quotes;

void check_inputs(const std::vector<LayerSpec>& layers, std::vector<FieldError>& errors) {
  std::set<std::string> before{"input"};
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = layers[i];
    for (size_t j = 0; j < layer.inputs.size(); ++j) {
      if (before.contains(layer.inputs[j])) continue;
      errors.push_back(
          {"spec.model.layers[" + std::to_string(i) + "].inputs[" + std::to_string(j) + "]",
           in_quotes(layer.inputs[j]) + " is no layer before " + in_quotes(layer.name)});
    }
    before.insert(layer.name);
  }
}

bool gives_image(const std::optional<nlohmann::json>& pod_template) {
  const auto containers = nlohmann::json::json_pointer("/spec/containers");
  if (!pod_template || !pod_template->contains(containers)) return false;
  const auto& list = pod_template->at(containers);
  return list.is_array() && std::ranges::any_of(list, [](const nlohmann::json& one) {
           return one.is_object() && one.contains("name") && one["name"] == kServerContainer &&
                  one.contains("image");
         });
}

}  // namespace

std::vector<FieldError> check_references(const TrainingJob& job) {
  std::vector<FieldError> errors;
  check_inputs(job.spec.model.layers, errors);
  const ServerSpec& server = job.spec.server;
  if (server.engine == Engine::kExternal && !gives_image(server.pod_template)) {
    errors.push_back({"spec.server.engine",
                      "External needs the image of your own server; give template.spec.containers "
                      "one named server with image"});
  }
  return errors;
}

}  // namespace outrigger::api
