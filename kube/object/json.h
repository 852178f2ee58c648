#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrigger::kube {

/// An API object as it is on the wire.
using Json = nlohmann::json;
/// One whose members stay in the order in which they were added.
using OrderedJson = nlohmann::ordered_json;

/// A field of every object that is not to be kept, named by its parent's key and its own.
struct DroppedField {
  std::string parent;
  std::string name;
};

/// What alone is kept of every object under that key, for whoever knows all that he reads; other
/// parents' fields are not touched. What stands in a list is under "".
struct KeptFields {
  std::string parent;
  std::vector<std::string> names;
};

/// What nobody but the API server reads, and half of an object's bytes.
inline const std::vector<DroppedField> kManagedFields{{"metadata", "managedFields"}};

/// Parses one JSON text; dropped fields, and those beside what is kept, are never built. The
/// outermost object's own are always there. Throws IoError that says where and quotes the
/// beginning.
Json parse_json(std::string_view text, const std::vector<DroppedField>& dropped = {},
                std::span<const KeptFields> kept = {});

/// One JSON text without spaces, as the library writes it, several times faster. Bad UTF-8 (in a
/// note that quotes a process's output, say) is replaced.
std::string to_text(const Json& value);
std::string to_text(const OrderedJson& value);
/// Appends the same of a string.
void append_text(std::string& text, std::string_view value);

}  // namespace outrigger::kube
