#include "operator/read_job.h"

#include <utility>

#include "api/defaults.h"
#include "api/parse.h"
#include "api/validate.h"

namespace outrigger::controller {

JobRecord read_job(const Json& object) {
  Json known = Json::object();
  for (const char* part : {"apiVersion", "kind", "spec", "status"}) {
    if (object.contains(part)) known[part] = object[part];
  }
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "generation",
                            "creationTimestamp", "deletionTimestamp", "labels"}) {
    const auto metadata = object.find("metadata");
    if (metadata != object.end() && metadata->contains(field))
      known["metadata"][field] = (*metadata)[field];
  }
  auto read = api::parse_training_job_object(known);
  JobRecord record{std::move(read.job), std::move(read.errors)};
  if (!record.job.status) record.job.status.emplace();
  std::erase_if(record.errors, [](const auto& error) { return error.path.starts_with("status"); });
  if (record.errors.empty()) {
    api::apply_defaults(record.job);
    record.errors = api::validate(record.job);
    std::erase_if(record.errors,
                  [](const auto& error) { return error.path.starts_with("status"); });
  }
  return record;
}

}  // namespace outrigger::controller
