#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace outrigger::api {

/// An object as YAML in block style that every reader takes for the same values: texts that look
/// like anything else are quoted. Used by write.
std::string to_yaml_text(const nlohmann::ordered_json& value);

}  // namespace outrigger::api
