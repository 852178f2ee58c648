#pragma once

#include <string>

#include "operator/objects/workload.h"
#include "tests/unit/operator/world.h"

/// Jobs that queue with Kueue, and what Kueue does to them.
namespace outrigger::controller {

inline constexpr const char* kWorkloadKey = "Workload/trainingjob-faces";

/// The spec of a job in a queue.
std::string queued_spec(const std::string& more = "  workers: {replicas: 2}\n");
/// A job that has asked for a place and waits.
World queued(const std::string& more = "  workers: {replicas: 2}\n");
/// One that has its place, and whose pods run.
World admitted(const std::string& more = "  workers: {replicas: 2}\n");

Json& workload(World& world);
void set(World& world, const WorkloadCondition& condition);
/// As Kueue's scheduler does.
void admit(World& world, const char* flavor = "on-demand");
void evict(World& world);

/// Status and reason of a condition of the workload: "True/Reason".
std::string workload_says(World& world, const std::string& type);
/// The message of a condition of the job.
std::string told(const World& world, const std::string& type);

}  // namespace outrigger::controller
