#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/schema.h"

namespace outrigger::api::crd {

/// The CEL rules of the object at `path` (without indexes: "spec.model.layers[]"), as the value of
/// x-kubernetes-validations: one of its alternatives, what api/rules.cc says of several fields, and
/// for "spec" what may be changed. Empty where there is none.
nlohmann::ordered_json rules_at(const std::string& path, const schema::Object& object);

/// Rules over the whole object.
nlohmann::ordered_json root_rules();

/// A rule, with the field below the object that an error is shown at ("" : the object).
nlohmann::ordered_json cel_rule(const std::string& rule, const std::string& message,
                                const std::string& field = "");

}  // namespace outrigger::api::crd
