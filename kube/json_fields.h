#pragma once

#include <string>
#include <string_view>

#include "kube/object/json.h"

/// Fields of objects that others write: what is absent, or of another kind than it should be, reads
/// as nothing.
namespace outrigger::kube {

/// The field of an object; null where there is none.
inline const Json& at(const Json& object, std::string_view name) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

/// The text in a field; empty where it is no text.
inline std::string text_at(const Json& object, std::string_view name) {
  const Json& value = at(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace outrigger::kube
