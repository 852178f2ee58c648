#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace outrigger::api::crd {

/// The transition rules that stand at `path` ("spec.model"; never an item's), from each field's
/// Change. A rule stands on its field where that is always there: each member that CEL selects
/// costs an API server as much as the object has fields, at every write of a status too. A rule on
/// a field that may come or go is not asked then, so it stands on the object around; what is
/// allowed while a job is suspended stands on spec.
nlohmann::ordered_json change_rules(const std::string& path);

/// The rule of the whole object by which a job that has ended keeps its spec, but for what its
/// fields' Change lets through.
nlohmann::ordered_json end_rule();

}  // namespace outrigger::api::crd
