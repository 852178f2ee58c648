#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/training_job.h"

namespace outrigger::api {

/// The job as an object, fields in the order of docs/fields.md; what is unset is absent, never
/// null.
nlohmann::ordered_json to_json(const TrainingJob& job);

/// The same as text that parse_training_job reads back to an equal job.
std::string to_json_text(const TrainingJob& job);
std::string to_yaml(const TrainingJob& job);

/// As to_json, without what is as its field's default is: a reader of an older version, which may
/// not know the field, need not be told.
nlohmann::ordered_json to_short_json(const TrainingJob& job);

/// The status alone, for a status patch.
nlohmann::ordered_json to_json(const TrainingJobStatus& status);

}  // namespace outrigger::api
