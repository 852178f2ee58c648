#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// Fields of objects that others write: what is absent, or of another kind than it should be, reads
/// as nothing.
namespace outrigger {

/// The field of an object; null where there is none.
inline const nlohmann::json& at(const nlohmann::json& object, std::string_view name) {
  static const nlohmann::json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

/// The text in a field; empty where it is no text.
inline std::string text_at(const nlohmann::json& object, std::string_view name) {
  const nlohmann::json& value = at(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace outrigger
