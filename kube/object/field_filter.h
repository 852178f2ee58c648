#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "kube/object/json.h"

namespace outrigger::kube {

/// What of a text is built, for both parsers.
struct FieldFilter {
  std::span<const DroppedField> dropped;
  std::span<const KeptFields> kept;

  bool passes(std::string_view parent, std::string_view name) const {
    for (const KeptFields& one : kept) {
      if (one.parent == parent && std::ranges::find(one.names, name) == one.names.end())
        return false;
    }
    return std::ranges::none_of(dropped, [&](const DroppedField& field) {
      return field.name == name && field.parent == parent;
    });
  }
};

}  // namespace outrigger::kube
