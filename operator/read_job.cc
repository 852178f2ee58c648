#include "operator/read_job.h"

#include <algorithm>
#include <utility>

#include "api/defaults.h"
#include "api/parse.h"
#include "api/references.h"
#include "api/validate.h"

namespace outrigger::controller {
namespace {

/// Of an object what a TrainingJob has.
Json known_parts(Json object, bool with_spec) {
  Json known = Json::object();
  for (const char* part : {"apiVersion", "kind", "spec", "status"}) {
    if (object.contains(part) && (with_spec || part != std::string_view("spec")))
      known[part] = std::move(object[part]);
  }
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "generation",
                            "creationTimestamp", "deletionTimestamp", "labels"}) {
    const auto metadata = object.find("metadata");
    if (metadata != object.end() && metadata->contains(field))
      known["metadata"][field] = std::move((*metadata)[field]);
  }
  return known;
}

// No policy of the operator asks for these.
bool is_for_servers(const api::FieldError& error) {
  constexpr std::string_view kParts[] = {"spec.model", "spec.training", "spec.split"};
  return std::ranges::any_of(kParts, [&](std::string_view part) {
    const std::string_view path = error.path;
    return path.starts_with(part) && (path.size() == part.size() || path[part.size()] == '.');
  });
}

}  // namespace

JobRecord read_job(Json object) {
  auto read = api::parse_training_job_object(known_parts(std::move(object), true),
                                             api::UnknownFields::kPassOver);
  JobRecord record{std::move(read.job), std::move(read.errors), std::move(read.unknown)};
  if (!record.job.status) record.job.status.emplace();
  std::erase_if(record.errors, [](const auto& error) { return error.path.starts_with("status"); });
  std::erase_if(record.unknown, [](const auto& field) { return field.starts_with("status"); });
  if (record.errors.empty()) {
    api::apply_defaults(record.job);
    record.errors = api::validate(record.job);
    std::erase_if(record.errors,
                  [](const auto& error) { return error.path.starts_with("status"); });
    if (record.errors.empty()) record.errors = api::check_references(record.job);
    record.only_invalid = !record.errors.empty();
  } else {
    record.only_for_servers = std::ranges::all_of(record.errors, is_for_servers);
  }
  return record;
}

JobRecord read_job_again(Json object, const JobRecord& before) {
  const Json::json_pointer place("/metadata/generation");
  const auto& known = before.job.metadata.generation;
  if (!known || !object.contains(place) || object[place] != *known)
    return read_job(std::move(object));
  // That the spec is missing is one of the errors, none of which is new.
  auto read = api::parse_training_job_object(known_parts(std::move(object), false));
  JobRecord record{std::move(read.job), before.errors, before.unknown, before.only_invalid,
                   before.only_for_servers};
  record.job.spec = before.job.spec;
  if (!record.job.status) record.job.status.emplace();
  return record;
}

}  // namespace outrigger::controller
