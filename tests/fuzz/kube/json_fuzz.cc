// Any bytes as JSON: what our reader makes of them is what the library makes of them, with fields
// dropped or not.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "kube/object/json.h"

namespace outrigger::kube {
namespace {

const std::vector<DroppedField> kDropped{{"m", "d"}, {"", "e"}};

bool is_dropped(const std::string& parent, const std::string& name) {
  for (const DroppedField& field : kDropped) {
    if (field.parent == parent && field.name == name) return true;
  }
  return false;
}

// The same of a text that was read whole; nothing is dropped of the outermost object.
Json without_dropped(const Json& value, const std::string& name, bool outermost) {
  if (value.is_object()) {
    Json kept = Json::object();
    for (const auto& [key, member] : value.items()) {
      if (outermost || !is_dropped(name, key)) kept[key] = without_dropped(member, key, false);
    }
    return kept;
  }
  if (!value.is_array()) return value;
  Json kept = Json::array();
  for (const Json& one : value) kept.push_back(without_dropped(one, "", false));
  return kept;
}

bool is_refused(std::string_view text) {
  try {
    parse_json(text);
  } catch (const IoError&) {
    return true;
  }
  return false;
}

}  // namespace
}  // namespace outrigger::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrigger::kube;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Json wanted = Json::parse(text, nullptr, false);
  if (wanted.is_discarded()) {
    if (!is_refused(text)) std::abort();
  } else if (to_text(wanted) != wanted.dump(-1, ' ', false, Json::error_handler_t::replace) ||
             parse_json(text) != wanted ||
             parse_json(text, kDropped) != without_dropped(wanted, "", true)) {
    std::abort();
  }
  return 0;
}
