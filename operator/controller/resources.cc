#include "operator/controller/resources.h"

#include <string>

#include "api/names.h"
#include "operator/names.h"

namespace outrigger::controller {

const kube::Resource kTrainingJobs{std::string(api::kGroup), std::string(api::kVersion),
                                   std::string(api::kPlural), std::string(api::kKind)};
const kube::Resource kPods{"", "v1", "pods", "Pod"};
const kube::Resource kNodes{"", "v1", "nodes", "Node", false};
const kube::Resource kServices{"", "v1", "services", "Service"};
const kube::Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
const kube::Resource kSecrets{"", "v1", "secrets", "Secret"};
const kube::Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies",
                                      "NetworkPolicy"};
const kube::Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass",
                                      false};
const kube::Resource kWorkloads{"kueue.x-k8s.io", "v1beta1", "workloads", "Workload"};
const kube::Resource kResourceFlavors{"kueue.x-k8s.io", "v1beta1", "resourceflavors",
                                      "ResourceFlavor", false};

const std::vector<kube::DroppedField> kUnread{{"metadata", "managedFields"},
                                              {"spec", "containers"},
                                              {"spec", "initContainers"},
                                              {"spec", "volumes"},
                                              {"spec", "tolerations"},
                                              {"spec", "affinity"},
                                              {"", "template"},    // of a Workload's pod sets
                                              {"object", "data"},  // of a ConfigMap in a watch
                                              {"", "data"}};       // and in a list

const std::vector<kube::KeptFields> kReadOfPods{
    {"metadata",
     {"name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences",
      "creationTimestamp", "deletionTimestamp", "continue"}},  // the last is a list's
    {"labels",
     {std::string(api::kJobNameLabel), std::string(api::kRoleLabel), std::string(api::kIndexLabel),
      std::string(api::kAttemptLabel)}},
    {"annotations", {std::string(kFailuresAnnotation)}},
    {"spec", {"nodeName"}},
    {"status",
     {"phase", "podIP", "startTime", "reason", "message", "conditions", "containerStatuses",
      "initContainerStatuses"}},
    // Of a list's items, owners, conditions and containers.
    {"",
     {"metadata", "spec", "status", "uid", "controller", "type", "reason", "message", "name",
      "imageID", "ready", "state"}}};

const kube::Resource& resource_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kPod:
      return kPods;
    case ObjectKind::kService:
      return kServices;
    case ObjectKind::kConfigMap:
      return kConfigMaps;
    case ObjectKind::kSecret:
      return kSecrets;
    case ObjectKind::kNetworkPolicy:
      return kNetworkPolicies;
    case ObjectKind::kWorkload:
      return kWorkloads;
    case ObjectKind::kTrainingJob:
      break;
  }
  return kTrainingJobs;
}

std::string managed_selector() {
  return std::string(api::kManagedByLabel) + "=" + std::string(api::kManagedByValue);
}

}  // namespace outrigger::controller
