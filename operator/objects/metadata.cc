#include "operator/objects/metadata.h"

#include "api/names.h"
#include "operator/names.h"

namespace outrigger::controller {

Json child_metadata(const api::TrainingJob& job, const std::string& name,
                    std::optional<api::Role> role) {
  Json labels{{api::kManagedByLabel, api::kManagedByValue},
              {api::kJobNameLabel, job.metadata.name},
              {api::kJobUidLabel, job.metadata.uid}};
  if (role) labels[std::string(api::kRoleLabel)] = role_name(*role);
  Json owner{{"apiVersion", api::kApiVersion}, {"kind", api::kKind}, {"name", job.metadata.name},
             {"uid", job.metadata.uid},        {"controller", true}, {"blockOwnerDeletion", true}};
  return {{"name", name},
          {"namespace", job.metadata.namespace_name},
          {"labels", std::move(labels)},
          {"ownerReferences", Json::array({std::move(owner)})}};
}

Json pod_selector(const api::TrainingJob& job, std::optional<api::Role> role) {
  Json labels{{api::kJobUidLabel, job.metadata.uid}};
  if (role) labels[std::string(api::kRoleLabel)] = role_name(*role);
  return labels;
}

}  // namespace outrigger::controller
