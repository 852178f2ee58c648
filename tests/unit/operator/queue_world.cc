#include "tests/unit/operator/queue_world.h"

#include <utility>

namespace outrigger::controller {

std::string queued_spec(const std::string& more) {
  return "  schedulingPolicy: {queue: team-a}\n" + more;
}

World queued(const std::string& more) {
  World world(queued_spec(more));
  world.queue.known = true;
  world.settle();
  return world;
}

Json& workload(World& world) { return world.others.at(kWorkloadKey); }

void set(World& world, const WorkloadCondition& condition) {
  Json& conditions = workload(world)["status"]["conditions"];
  if (conditions.is_null()) conditions = Json::array();
  conditions = with_condition(std::move(conditions), condition, world.now);
}

void admit(World& world, const char* flavor) {
  Json assignments = Json::array();
  for (const Json& one : workload(world)["spec"]["podSets"]) {
    assignments.push_back(
        {{"name", one["name"]}, {"count", one["count"]}, {"flavors", {{"cpu", flavor}}}});
  }
  workload(world)["status"]["admission"] = {{"clusterQueue", "all"},
                                            {"podSetAssignments", std::move(assignments)}};
  set(world, {"QuotaReserved", true, "QuotaReserved", ""});
  set(world, {"Admitted", true, "Admitted", ""});
  if (workload(world)["status"]["conditions"].size() > 2)
    set(world, {"Evicted", false, "QuotaReserved", ""});
  world.queue.flavors[flavor] = {{{"disk", "ssd"}}, {}, {}, Json::array({{{"key", "spot"}}})};
}

void evict(World& world) { set(world, {"Evicted", true, "Preempted", "by a higher priority"}); }

World admitted(const std::string& more) {
  World world = queued(more);
  admit(world);
  world.settle();
  world.run_all();
  world.settle();
  return world;
}

std::string workload_says(World& world, const std::string& type) {
  for (const Json& one : workload(world)["status"]["conditions"]) {
    if (one["type"] == type)
      return one["status"].get<std::string>() + "/" + one["reason"].get<std::string>();
  }
  return "";
}

std::string told(const World& world, const std::string& type) {
  for (const auto& condition : world.job.status->conditions) {
    if (condition.type == type) return condition.message;
  }
  return "";
}

}  // namespace outrigger::controller
