#include "operator/objects/pod.h"

#include <gmock/gmock.h>

#include "api/launch.h"
#include "api/names.h"
#include "api/parse.h"
#include "operator/objects/merge.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::Pair;

Json pod_of(const World& world, api::Role role, int index = 0) {
  PodOrder order;
  order.place = {role, index, 0};
  order.attempt = 1;
  order.image = "image:1";
  return build_pod(world.job, order, world.options);
}
Json server_of(const std::string& more = "") { return pod_of(World(more), api::Role::kServer); }
Json worker_of(const std::string& more = "") { return pod_of(World(more), api::Role::kWorker); }
const Json& container_of(const Json& pod) { return pod["spec"]["containers"][0]; }

api::Launch launch_of(const Json& pod, api::Role role) {
  const auto texts = container_of(pod)["args"].get<std::vector<std::string>>();
  std::vector<const char*> arguments;
  for (const std::string& text : texts) arguments.push_back(text.c_str());
  return api::parse_launch(role, arguments, [](auto) { return std::nullopt; });
}

// https://kubernetes.io/docs/concepts/security/pod-security-standards/, "Restricted".
void expect_restricted(const Json& pod) {
  const Json& security = pod["spec"]["securityContext"];
  EXPECT_EQ(security["runAsNonRoot"], true);
  EXPECT_EQ(security["seccompProfile"]["type"], "RuntimeDefault");
  EXPECT_FALSE(security.contains("runAsUser"));
  const Json& own = container_of(pod)["securityContext"];
  EXPECT_EQ(own["allowPrivilegeEscalation"], false);
  EXPECT_EQ(own["readOnlyRootFilesystem"], true);
  EXPECT_EQ(own["capabilities"]["drop"], Json::array({"ALL"}));
  EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false);
  for (const Json& volume : pod["spec"]["volumes"]) EXPECT_FALSE(volume.contains("hostPath"));
}

TEST(Pod, BothRolesMeetPodSecuritysRestrictedByDefault) {
  expect_restricted(server_of());
  expect_restricted(worker_of());
}

TEST(Pod, NeverRestartsByItselfAndBelongsToItsJob) {
  const Json pod = server_of();
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  const Json& owner = pod["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["uid"], "0123456789ab");
  EXPECT_EQ(owner["controller"], true);
  EXPECT_EQ(pod["metadata"]["labels"]["outrigger.dev/job-name"], "faces");
  EXPECT_FALSE(pod["metadata"].contains("finalizers"));
}

TEST(Pod, AServerIsToldItsJobRankAttemptAndTokens) {
  const auto launch = launch_of(server_of(), api::Role::kServer);
  EXPECT_EQ(launch.job_file, api::kJobFilePath);
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.replicas, 1);
  EXPECT_EQ(launch.rendezvous, "");
  EXPECT_TRUE(launch.resume);
  EXPECT_EQ(launch.token_file, api::kJoinTokenPath);
  EXPECT_EQ(launch.control_token_file, api::kControlTokenPath);
  EXPECT_EQ(launch.termination_file, api::kTerminationLogPath);
}

TEST(Pod, RanksMeetAtTheFirstOnesAddress) {
  const World world("  server: {replicas: 3}\n  network: {port: 3000}\n");
  const auto launch = launch_of(pod_of(world, api::Role::kServer, 2), api::Role::kServer);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.replicas, 3);
  EXPECT_EQ(launch.rendezvous, "faces-server-0.faces-server.team.svc:3000");
}

TEST(Pod, AWorkerIsToldAServerAndTheJoinTokenAlone) {
  const Json pod = worker_of();
  const auto launch = launch_of(pod, api::Role::kWorker);
  EXPECT_EQ(launch.server, "faces-server-0.faces-server.team.svc:29400");
  EXPECT_EQ(launch.token_file, api::kJoinTokenPath);
  EXPECT_EQ(pod["spec"].dump().find("control-token"), std::string::npos);
}

TEST(Pod, WorkersAreSpreadOverTheServers) {
  const World world("  server: {replicas: 2}\n");
  EXPECT_EQ(launch_of(pod_of(world, api::Role::kWorker, 3), api::Role::kWorker).server,
            "faces-server-1.faces-server.team.svc:29400");
}

TEST(Pod, AServerHasTheCheckpointsGraceAndIsNotMovedByAutoscalers) {
  const Json pod = server_of("  checkpoint: {gracePeriodSeconds: 77}\n");
  EXPECT_EQ(pod["spec"]["terminationGracePeriodSeconds"], 77);
  EXPECT_EQ(pod["metadata"]["annotations"][std::string(api::kSafeToEvictAnnotation)], "false");
  EXPECT_EQ(pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"], "true");
  EXPECT_FALSE(worker_of()["metadata"]["annotations"].contains("karpenter.sh/do-not-disrupt"));
  EXPECT_EQ(pod["spec"]["hostname"], "faces-server-0");
  EXPECT_EQ(pod["spec"]["subdomain"], "faces-server");
}

TEST(Pod, AWorkerLeavesALostNodeAfterTenSecondsUnlessItsTemplateSaysElse) {
  const Json usual = worker_of();
  for (const Json& toleration : usual["spec"]["tolerations"])
    EXPECT_EQ(toleration["tolerationSeconds"], 10);
  const Json own = worker_of(
      "  workers: {template: {spec: {tolerations: [{key: node.kubernetes.io/unreachable, "
      "operator: Exists, effect: NoExecute, tolerationSeconds: 60}]}}}\n");
  EXPECT_EQ(own["spec"]["tolerations"].size(), 2U);
  EXPECT_EQ(own["spec"]["tolerations"][0]["tolerationSeconds"], 60);
}

TEST(Pod, BothRolesFollowTheSchedulingPolicy) {
  const std::string policy =
      "  schedulingPolicy: {priorityClassName: high, topologyKey: topology.kubernetes.io/zone}\n";
  for (const Json& pod : {server_of(policy), worker_of(policy)}) {
    EXPECT_EQ(pod["spec"]["priorityClassName"], "high");
    const Json& terms =
        pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    ASSERT_EQ(terms.size(), 1U);
    EXPECT_EQ(terms[0]["topologyKey"], "topology.kubernetes.io/zone");
    EXPECT_EQ(terms[0]["labelSelector"]["matchLabels"],
              Json({{"outrigger.dev/job-uid", "0123456789ab"}, {"outrigger.dev/role", "server"}}))
        << "workers that are left in a zone keep no server from another";
  }
  const char* preferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const Json drawn = server_of(policy)["spec"]["affinity"]["podAffinity"][preferred];
  EXPECT_EQ(drawn[0]["podAffinityTerm"]["labelSelector"]["matchLabels"],
            Json({{"outrigger.dev/job-uid", "0123456789ab"}}));
  EXPECT_FALSE(worker_of(policy)["spec"]["affinity"]["podAffinity"].contains(preferred));
  EXPECT_FALSE(server_of()["spec"].contains("affinity"));
}

TEST(Pod, RunsWhereOurImagesDoUnlessItsTemplateSaysElse) {
  constexpr const char* kArchitecture = "kubernetes.io/arch";
  for (const Json& pod : {server_of(), worker_of()})
    EXPECT_EQ(pod["spec"]["nodeSelector"], Json({{kArchitecture, "amd64"}}));
  const auto selector_with = [](const std::string& given) {
    return worker_of("  workers: {template: {spec: {nodeSelector: {" + given +
                     "}}}}\n")["spec"]["nodeSelector"];
  };
  EXPECT_EQ(selector_with("kubernetes.io/arch: arm64"), Json({{kArchitecture, "arm64"}}));
  EXPECT_EQ(selector_with("disk: fast"), Json({{kArchitecture, "amd64"}, {"disk", "fast"}}));
}

TEST(Pod, ATemplatesWordsWinButForWhatTheJobNeeds) {
  const Json pod = server_of(
      "  server:\n"
      "    template:\n"
      "      metadata: {labels: {team: vision, outrigger.dev/role: worker}}\n"
      "      spec:\n"
      "        restartPolicy: Always\n"
      "        nodeSelector: {disk: fast}\n"
      "        securityContext: {runAsUser: 1234}\n"
      "        initContainers: [{name: fetch, image: fetch:1}]\n"
      "        containers:\n"
      "        - {name: sidecar, image: side:1}\n"
      "        - {name: server, resources: {requests: {cpu: '2'}}, args: [--threads, '3'],\n"
      "           securityContext: {readOnlyRootFilesystem: false}}\n");
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "vision");
  EXPECT_EQ(pod["metadata"]["labels"]["outrigger.dev/role"], "server");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["disk"], "fast");
  EXPECT_EQ(pod["spec"]["securityContext"]["runAsUser"], 1234);
  EXPECT_EQ(pod["spec"]["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(pod["spec"]["initContainers"][0]["name"], "fetch");
  ASSERT_EQ(pod["spec"]["containers"].size(), 2U);
  EXPECT_EQ(container_of(pod)["name"], "server");
  EXPECT_EQ(pod["spec"]["containers"][1]["name"], "sidecar");
  EXPECT_EQ(container_of(pod)["resources"]["requests"]["cpu"], "2");
  EXPECT_EQ(container_of(pod)["securityContext"]["readOnlyRootFilesystem"], false);
  EXPECT_EQ(launch_of(pod, api::Role::kServer).threads, 3);
}

std::map<std::string, std::string> mounts_of(const Json& pod) {
  std::map<std::string, std::string> mounts;
  for (const Json& mount : container_of(pod)["volumeMounts"]) {
    const Json* volume = find_named(pod["spec"]["volumes"], mount["name"]);
    std::string what = volume == nullptr ? "none" : volume->items().begin().key();
    if (volume != nullptr && volume->contains("persistentVolumeClaim"))
      what = (*volume)["persistentVolumeClaim"]["claimName"];
    if (volume != nullptr && volume->contains("projected")) what = "projected";
    if (volume != nullptr && volume->contains("emptyDir")) what = "empty";
    mounts[mount["mountPath"]] = what + (mount.value("readOnly", false) ? ", read only" : "");
  }
  return mounts;
}

TEST(Pod, DataIsMountedToBeReadInBothRolesAndResultsToBeWrittenByServers) {
  const std::string more = "  checkpoint: {path: /checkpoints, volumeClaimName: results}\n";
  World world(more);
  world.spec().data.volume_claim_name = "faces";
  world.spec().output.volume_claim_name = "results";
  EXPECT_THAT(mounts_of(pod_of(world, api::Role::kServer)),
              ElementsAre(Pair("/checkpoints", "results"), Pair("/data", "faces, read only"),
                          Pair("/etc/outrigger", "projected, read only"), Pair("/runs", "results"),
                          Pair("/tmp", "empty")));
  EXPECT_THAT(mounts_of(pod_of(world, api::Role::kWorker)),
              ElementsAre(Pair("/data", "faces, read only"),
                          Pair("/etc/outrigger", "projected, read only"), Pair("/tmp", "empty")));
}

TEST(Pod, AClaimThatIsMountedTwiceIsOneVolume) {
  World world("  checkpoint: {path: /checkpoints, volumeClaimName: results}\n");
  world.spec().output.volume_claim_name = "results";
  int claims = 0;
  const Json pod = pod_of(world, api::Role::kServer);
  for (const Json& volume : pod["spec"]["volumes"])
    claims += volume.contains("persistentVolumeClaim") ? 1 : 0;
  EXPECT_EQ(claims, 1);
}

TEST(Pod, WithoutAClaimResultsHaveRoomUnlessATemplateMountsSomethingThere) {
  EXPECT_EQ(mounts_of(server_of())["/runs"], "empty");
  const Json own = server_of(
      "  server: {template: {spec: {volumes: [{name: mine, nfs: {server: s, path: /x}}], "
      "containers: [{name: server, volumeMounts: [{name: mine, mountPath: /runs}]}]}}}\n");
  EXPECT_EQ(container_of(own)["volumeMounts"][0]["name"], "mine");
  int at_runs = 0;
  for (const Json& mount : container_of(own)["volumeMounts"])
    at_runs += mount["mountPath"] == "/runs" ? 1 : 0;
  EXPECT_EQ(at_runs, 1);
}

TEST(Pod, AGpuIsAskedForByTheNameOfItsResource) {
  World world("  server: {gpus: 1, gpuResourceName: amd.com/gpu}\n");
  const Json pod = pod_of(world, api::Role::kServer);
  EXPECT_EQ(container_of(pod)["resources"]["limits"]["amd.com/gpu"], "1");
  EXPECT_FALSE(container_of(pod_of(world, api::Role::kWorker)).contains("resources"));
}

TEST(Pod, OneOfSeveralGpusStartsARankForEach) {
  const World world("  server: {replicas: 2, gpus: 4}\n  network: {port: 3000}\n");
  const Json pod = pod_of(world, api::Role::kServer, 1);
  const auto launch = launch_of(pod, api::Role::kServer);
  EXPECT_EQ(launch.rank, 4);
  EXPECT_EQ(launch.ranks, 4);
  EXPECT_EQ(launch.replicas, 8);
  EXPECT_EQ(launch.rendezvous, "faces-server-0.faces-server.team.svc:3000");
  EXPECT_EQ(mounts_of(pod)["/dev/shm"], "empty");
  for (const Json& volume : pod["spec"]["volumes"]) {
    if (volume["name"] != "outrigger-shm") continue;
    EXPECT_EQ(volume["emptyDir"]["medium"], "Memory");
  }
  std::map<std::string, int> ports;
  for (const Json& port : container_of(pod)["ports"])
    ports[port["name"].get<std::string>()] = port["containerPort"].get<int>();
  EXPECT_EQ(ports.size(), 8U);
  EXPECT_EQ(ports["join"], 3000);
  EXPECT_EQ(ports["join-3"], 3003);
  EXPECT_EQ(ports["status-3"], 8083);
}

TEST(Pod, OfTheExampleForInfiniBandHasAdaptersMemoryThatStaysAndNcclsSettings) {
  World world;
  world.job.spec =
      api::load_training_job(OUTRIGGER_SOURCE_DIR "/manifests/examples/faces-infiniband.yaml").spec;
  const Json pod = pod_of(world, api::Role::kServer, 1);
  const Json& server = container_of(pod);
  EXPECT_EQ(server["resources"]["limits"]["rdma/hca"], "8");
  EXPECT_EQ(server["resources"]["limits"]["nvidia.com/gpu"], "8");
  const Json& capabilities = server["securityContext"]["capabilities"];
  EXPECT_EQ(capabilities["add"], Json::array({"IPC_LOCK"}));
  EXPECT_EQ(capabilities["drop"], Json::array({"ALL"})) << "and no other";
  EXPECT_EQ(pod["spec"]["securityContext"]["runAsUser"], 0) << "who alone gets it";
  EXPECT_EQ(pod["spec"]["securityContext"]["runAsNonRoot"], false);
  std::map<std::string, std::string> variables;
  for (const Json& variable : server["env"])
    variables[variable["name"].get<std::string>()] = variable.value("value", "");
  EXPECT_EQ(variables["NCCL_IB_HCA"], "mlx5");
  EXPECT_EQ(mounts_of(pod)["/dev/shm"], "empty");
  EXPECT_EQ(launch_of(pod, api::Role::kServer).replicas, 16);
}

TEST(Pod, WorkersAreSpreadOverTheRanksOfAllPods) {
  const World world("  server: {replicas: 2, gpus: 3}\n");
  const auto server = [&](int index) {
    return launch_of(pod_of(world, api::Role::kWorker, index), api::Role::kWorker).server;
  };
  EXPECT_EQ(server(2), "faces-server-0.faces-server.team.svc:29402");
  EXPECT_EQ(server(3), "faces-server-1.faces-server.team.svc:29400");
  EXPECT_EQ(server(7), "faces-server-0.faces-server.team.svc:29401");
}

TEST(Pod, SharedMemoryOfATemplateIsKept) {
  const Json pod = server_of(
      "  server: {gpus: 2, template: {spec: {volumes: [{name: mine, emptyDir: {medium: Memory, "
      "sizeLimit: 1Gi}}], containers: [{name: server, volumeMounts: [{name: mine, mountPath: "
      "/dev/shm}]}]}}}\n");
  for (const Json& volume : pod["spec"]["volumes"]) EXPECT_NE(volume["name"], "outrigger-shm");
  EXPECT_EQ(mounts_of(server_of("  server: {gpus: 1}\n")).count("/dev/shm"), 0U);
}

TEST(Pod, TheGroupOfVolumesCanBeLeftToTheCluster) {
  World world;
  world.options.fs_group = 65532;
  EXPECT_EQ(pod_of(world, api::Role::kServer)["spec"]["securityContext"]["fsGroup"], 65532);
  EXPECT_FALSE(pod_of(world, api::Role::kWorker)["spec"]["securityContext"].contains("fsGroup"));
  world.options.fs_group.reset();
  EXPECT_FALSE(pod_of(world, api::Role::kServer)["spec"]["securityContext"].contains("fsGroup"));
}

TEST(Pod, PullSecretsOfTheInstallationJoinThoseOfATemplate) {
  World world("  workers: {template: {spec: {imagePullSecrets: [{name: mine}]}}}\n");
  world.options.image_pull_secrets = {"all", "mine"};
  EXPECT_EQ(pod_of(world, api::Role::kWorker)["spec"]["imagePullSecrets"],
            Json::array({{{"name", "mine"}}, {{"name", "all"}}}));
}

}  // namespace
}  // namespace outrigger::controller
