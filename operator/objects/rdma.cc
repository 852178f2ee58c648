#include "operator/objects/rdma.h"

#include <cstdint>
#include <string>

#include "operator/objects/merge.h"

namespace outrigger::controller {
namespace {

void add_resource(Json& container, const std::string& name, int64_t count) {
  Json& resources = object_at(container, "resources");
  if (resources.contains("requests") && resources["requests"].contains(name)) return;
  fill(object_at(resources, "limits"), {{name, std::to_string(count)}});
}

}  // namespace

void add_rdma(Json& container, const api::TrainingJob& job, const RdmaOptions& rdma) {
  const int64_t gpus = job.spec.server.gpus;
  if (gpus < 1 || job.spec.server.replicas < 2) return;
  for (const auto& [name, count] : rdma.resources) add_resource(container, name, count);
  for (const auto& [name, count] : rdma.resources_per_gpu)
    add_resource(container, name, count * gpus);
  for (const auto& [name, value] : rdma.variables)
    add_named(list_at(container, "env"), {{"name", name}, {"value", value}});
  if (rdma.lock_memory) {
    const Json add = Json::array({"IPC_LOCK"});
    fill(container, {{"securityContext", {{"capabilities", {{"add", add}}}}}});
  }
}

}  // namespace outrigger::controller
