#pragma once

#include <nlohmann/json.hpp>

#include "api/schema/text_node.h"

namespace outrigger::api::schema {

/// The tree of an object that was parsed already; it has no places.
TextNode tree_of(const nlohmann::json& value);

}  // namespace outrigger::api::schema
