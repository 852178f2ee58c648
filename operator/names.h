#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/run_policy.h"

/// Every name that the operator gives to what it makes.
namespace outrigger::controller {

/// On pods: how many pods of this index failed in a row before this one was made.
inline constexpr std::string_view kFailuresAnnotation = "outrigger.dev/failures";
/// On servers: Karpenter does not move them of itself, as Cluster Autoscaler does not.
inline constexpr std::string_view kDoNotDisruptAnnotation = "karpenter.sh/do-not-disrupt";
/// On a job's NetworkPolicy: the ranks of a server's pod, whose ports it names.
inline constexpr std::string_view kRanksLabel = "outrigger.dev/ranks";
/// Who sends events and writes objects.
inline constexpr std::string_view kComponent = "outrigger-operator";

std::string_view role_name(api::Role role);
/// Nothing where it is no role of ours.
std::optional<api::Role> parse_role(std::string_view name);

/// Which pod of a job: "<job>-server-<index>-<number>".
struct PodPlace {
  api::Role role = api::Role::kServer;
  int index = 0;
  int number = 0;
};
std::string pod_name(const std::string& job, const PodPlace& place);
/// The number at the end of a pod's name; nothing where there is none.
std::optional<int> pod_number(std::string_view name);

/// The headless Service that gives servers their names.
std::string service_name(const std::string& job);
/// A server's host name, the same for every life of it; at most 60 characters, as DNS wants.
std::string server_host(const std::string& job, int index);
/// The same as others in the cluster resolve it, whatever the cluster's domain.
std::string server_address(const std::string& job, const std::string& ns, int index);
std::string config_map_name(const std::string& job, int attempt);
/// Bears a part of the job's UID: a former job's Secret is never taken for this one's, and none is
/// ever read.
std::string secret_name(const std::string& job, const std::string& uid);
std::string network_policy_name(const std::string& job);

/// What selects a job's pods of one role, as in a query.
std::string role_selector(const std::string& job, api::Role role);

}  // namespace outrigger::controller
