#pragma once

#include <string>
#include <vector>

#include "kube/object/json.h"
#include "kube/object/resource.h"
#include "operator/plan.h"

/// The resources that the operator touches, as the API server knows them.
namespace outrigger::controller {

extern const kube::Resource kTrainingJobs;
extern const kube::Resource kPods;
extern const kube::Resource kNodes;
extern const kube::Resource kServices;
extern const kube::Resource kConfigMaps;
extern const kube::Resource kSecrets;
extern const kube::Resource kNetworkPolicies;
extern const kube::Resource kPriorityClasses;
/// Of Kueue, which need not be installed.
extern const kube::Resource kWorkloads;
extern const kube::Resource kResourceFlavors;

const kube::Resource& resource_of(ObjectKind kind);

/// What no policy asks of what the operator made: most of its bytes. Not for TrainingJobs, which
/// have templates.
extern const std::vector<kube::DroppedField> kUnread;

/// All that is read of a pod in a list, a watch and the answer to a write: by read_pod(), of labels
/// by Caches, and by whoever lists and watches.
extern const std::vector<kube::KeptFields> kReadOfPods;

/// What selects every child that the operator ever made.
std::string managed_selector();

}  // namespace outrigger::controller
