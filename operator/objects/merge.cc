#include "operator/objects/merge.h"

#include <algorithm>
#include <utility>

namespace outrigger::controller {

void fill(Json& target, const Json& defaults) {
  for (const auto& [name, value] : defaults.items()) {
    if (!target.contains(name)) {
      target[name] = value;
    } else if (target[name].is_object() && value.is_object()) {
      fill(target[name], value);
    }
  }
}

Json& object_at(Json& object, const std::string& name) {
  Json& value = object[name];
  if (!value.is_object()) value = Json::object();
  return value;
}

Json& list_at(Json& object, const std::string& name) {
  Json& value = object[name];
  if (!value.is_array()) value = Json::array();
  return value;
}

const Json* find_named(const Json& list, const std::string& name) {
  if (!list.is_array()) return nullptr;
  const auto at = std::find_if(list.begin(), list.end(), [&](const Json& element) {
    return element.is_object() && element.contains("name") && element["name"] == name;
  });
  return at == list.end() ? nullptr : &*at;
}

void add_named(Json& list, Json element) {
  if (find_named(list, element.at("name").get<std::string>()) == nullptr)
    list.push_back(std::move(element));
}

}  // namespace outrigger::controller
