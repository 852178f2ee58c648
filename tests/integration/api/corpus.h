#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace outrigger::api {

using Json = nlohmann::ordered_json;

/// A TrainingJob, as an object, and whether it is one that can be run.
struct Case {
  std::string what;
  Json object;
  bool good = false;
};

/// Whole jobs from which others are made: every field given, each kind of layer, augmentation,
/// loss and schedule at least once, and the shortest.
std::vector<Case> base_jobs();

/// Jobs that break, or just do not break, one rule over several fields.
std::vector<Case> rule_cases();

/// Jobs that differ from a base in one field: beyond each bound of it and at it, of another type,
/// missing, unknown, … `good` is what validate says.
std::vector<Case> field_cases(const std::vector<Case>& bases);

/// What validate says of it, with defaults.
std::string errors_of(const Json& object);

}  // namespace outrigger::api
