#pragma once

#include <nlohmann/json.hpp>

#include "api/schema.h"

namespace outrigger::api::crd {

/// The transition rules of `spec`, from each field's Change. They stand on spec, which is always
/// there, and not on the fields: a rule on a field is not asked when the field comes or goes.
nlohmann::ordered_json change_rules(const schema::Object& spec);

}  // namespace outrigger::api::crd
