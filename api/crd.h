#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace outrigger::api {

/// The CustomResourceDefinition of TrainingJob, made from the tables of fields (schema.h): a
/// structural OpenAPI v3 schema with every bound, word, default and description; CEL for what a
/// single field cannot say (crd/rules.cc) and for what may be changed when (crd/change.cc); the
/// status and scale subresources and the columns of `kubectl get`. An API server gives the verdict
/// of `validate` (tests/integration/api).
nlohmann::ordered_json custom_resource_definition();

/// The same as YAML; what charts/outrigger/crds/ holds and `outrigger crd` prints.
std::string custom_resource_definition_yaml();

}  // namespace outrigger::api
