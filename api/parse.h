#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "api/training_job.h"

namespace outrigger::api {

/// What a text holds. `job` has every field that could be read; it is whole only where `errors` is
/// empty.
struct ParseResult {
  TrainingJob job;
  std::vector<FieldError> errors;
  /// Where each field that the text gives stands (line, column), for errors that are found later.
  std::map<std::string, std::pair<int, int>> places;
  /// Fields that were passed over, where that was asked for.
  std::vector<std::string> unknown = {};
};

/// The error with the line and column of its field, or of the object around a field that the text
/// does not give.
FieldError located(FieldError error, const std::map<std::string, std::pair<int, int>>& places);

/// What to do with a field that this version does not know.
enum class UnknownFields : uint8_t { kRefuse, kPassOver };

/// Reads one TrainingJob from YAML or JSON and reports everything that is wrong with its fields:
/// unknown and doubled names, wrong types, nulls, missing fields, bounds. Never throws for what is
/// in the text; bounded in size (1 MiB), depth and aliases. No defaults that depend on other fields
/// are set, and no rule over several fields is checked.
ParseResult parse_training_job(std::string_view text);

/// The same from an object that was parsed already, as an API server sends it; errors have no
/// lines. One from an API server has been checked there already, perhaps by a newer definition.
ParseResult parse_training_job_object(const nlohmann::json& object,
                                      UnknownFields unknown = UnknownFields::kRefuse);

/// What a job is after reading, defaulting, `validate` and `check_references`; `errors` empty: it
/// can be run. Rules over several fields are judged only once every field by itself is right.
ParseResult resolve_training_job(std::string_view text);

/// A file as `resolve_training_job` has it. Throws InvalidInput with all errors, one a line, each
/// with file, line, column and field, and where there is no such file; IoError where it cannot be
/// read.
TrainingJob load_training_job(const std::filesystem::path& path);
/// The same with the places of its fields, for what is found wrong with them later.
ParseResult load_with_places(const std::filesystem::path& path);

}  // namespace outrigger::api
