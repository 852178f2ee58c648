#include "operator/objects/rdma.h"

#include <gmock/gmock.h>

#include "operator/objects/pod.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

const RdmaOptions kAdapters{.resources = {{"rdma/shared", 1}},
                            .resources_per_gpu = {{"nvidia.com/hca", 2}},
                            .variables = {{"NCCL_IB_HCA", "mlx5"}, {"NCCL_IB_GID_INDEX", "3"}},
                            .lock_memory = true};

Json server_container(World& world, api::Role role = api::Role::kServer) {
  PodOrder order;
  order.place.role = role;
  order.image = "image:1";
  return build_pod(world.job, order, world.options)["spec"]["containers"][0];
}

Json server_container(const std::string& spec, const RdmaOptions& rdma = kAdapters) {
  World world(spec);
  world.options.rdma = rdma;
  return server_container(world);
}

std::string env_value(const Json& container, const std::string& name) {
  std::string found;
  for (const Json& one : container.value("env", Json::array())) {
    if (one.at("name") == name) found += one.value("value", "");
  }
  return found;
}

TEST(Rdma, ServersWithGpusInSeveralPodsGetWhatTheClusterHas) {
  const Json server = server_container("  server: {replicas: 2, gpus: 4}\n");
  const Json& limits = server["resources"]["limits"];
  EXPECT_EQ(limits["rdma/shared"], "1");
  EXPECT_EQ(limits["nvidia.com/hca"], "8");
  EXPECT_EQ(limits["nvidia.com/gpu"], "4");
  EXPECT_EQ(env_value(server, "NCCL_IB_HCA"), "mlx5");
  EXPECT_EQ(env_value(server, "NCCL_IB_GID_INDEX"), "3");
  const Json& security = server["securityContext"];
  EXPECT_EQ(security["capabilities"]["add"], Json::array({"IPC_LOCK"}));
  EXPECT_EQ(security["capabilities"]["drop"], Json::array({"ALL"})) << "and no other";
  EXPECT_EQ(security["allowPrivilegeEscalation"], false);
}

TEST(Rdma, NobodyElseGetsIt) {
  const auto same = [](const std::string& spec, api::Role role) {
    World with(spec), without(spec);
    with.options.rdma = kAdapters;
    return server_container(with, role) == server_container(without, role);
  };
  EXPECT_TRUE(same("  server: {gpus: 8}\n", api::Role::kServer)) << "all in one pod";
  EXPECT_TRUE(same("  server: {replicas: 2}\n", api::Role::kServer)) << "no GPUs";
  EXPECT_TRUE(same("  server: {replicas: 2, gpus: 4}\n", api::Role::kWorker));
  EXPECT_FALSE(same("  server: {replicas: 2, gpus: 1}\n", api::Role::kServer));
}

TEST(Rdma, NothingIsAddedWhereNothingWasSaid) {
  const Json server = server_container("  server: {replicas: 2, gpus: 4}\n", {});
  EXPECT_EQ(server["resources"]["limits"].size(), 1U) << "the GPUs";
  EXPECT_FALSE(server.contains("env"));
  EXPECT_FALSE(server["securityContext"]["capabilities"].contains("add"));
}

TEST(Rdma, TheJobsOwnTemplateWins) {
  const Json server = server_container(
      "  server: {replicas: 2, gpus: 4, template: {spec: {containers: [{name: server, "
      "resources: {limits: {rdma/shared: 7}, requests: {nvidia.com/hca: 3}}, "
      "env: [{name: NCCL_IB_HCA, value: ibp}, {name: MINE, value: x}], "
      "securityContext: {capabilities: {add: [SYS_NICE]}}}]}}}\n");
  EXPECT_EQ(server["resources"]["limits"]["rdma/shared"], 7);
  EXPECT_FALSE(server["resources"]["limits"].contains("nvidia.com/hca"));
  EXPECT_EQ(env_value(server, "NCCL_IB_HCA"), "ibp");
  EXPECT_EQ(env_value(server, "MINE"), "x");
  EXPECT_EQ(env_value(server, "NCCL_IB_GID_INDEX"), "3") << "what it does not name is added";
  EXPECT_EQ(server["securityContext"]["capabilities"]["add"], Json::array({"SYS_NICE"}));
}

TEST(Rdma, PodsThatRunStayAsTheyAre) {
  World world("  server: {replicas: 2, gpus: 1}\n");
  world.options.gpu = true;
  world.settle();
  world.run_all();
  world.settle();
  const auto before = world.pods;
  world.options.rdma = kAdapters;
  world.settle();
  EXPECT_EQ(world.pods, before);
}

}  // namespace
}  // namespace outrigger::controller
