#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outrigger::kube {

/// An API object as it is on the wire.
using Json = nlohmann::json;

/// A field of every object that is not to be kept, named by its parent's key and its own.
struct DroppedField {
  std::string parent;
  std::string name;
};

/// What nobody but the API server reads, and half of an object's bytes.
inline const std::vector<DroppedField> kManagedFields{{"metadata", "managedFields"}};

/// Parses one JSON text; dropped fields are never built. Throws IoError that says where and quotes
/// the beginning.
Json parse_json(std::string_view text, const std::vector<DroppedField>& dropped = {});

/// One JSON text without spaces, as the library writes it, several times faster. Bad UTF-8 (in a
/// note that quotes a process's output, say) is replaced.
std::string to_text(const Json& value);

}  // namespace outrigger::kube
