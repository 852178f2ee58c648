#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/schema.h"

namespace outrigger::api::crd {

/// Whether the schema names defaults, which the API server then writes into the object. A status
/// has none: what nobody saw is not there.
enum class Defaults { kWritten, kLeftOut };

/// The structural schema of an object at `path` ("spec.model"), with its members' and its own CEL
/// rules. Field by field it says what the tables say; lengths of texts are counted in characters
/// there and in bytes here.
nlohmann::ordered_json object_schema(const schema::Object& object, const std::string& path,
                                     Defaults defaults);

}  // namespace outrigger::api::crd
