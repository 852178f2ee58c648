// engine: External, a server of the user's own.
#include <gmock/gmock.h>

#include "api/launch.h"
#include "api/names.h"
#include "operator/objects/merge.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kSpec =
    "  server:\n"
    "    engine: External\n"
    "    replicas: 2\n"
    "    template:\n"
    "      spec:\n"
    "        containers:\n"
    "        - {name: server, image: 'registry.example/own:3', command: [python, train.py],\n"
    "           args: [--fast], env: [{name: OUTRIGGER_LOG_LEVEL, value: debug}]}\n"
    "  checkpoint: {path: /saved}\n"
    "  workers: {replicas: 1}\n";

const Json& container_of(const World& world, const std::string& pod) {
  return world.pods.at(pod)["spec"]["containers"][0];
}

std::string variable(const Json& container, const std::string& name) {
  const Json* found = find_named(container["env"], name);
  return found == nullptr ? "" : found->value("value", "");
}

TEST(External, RunsTheUsersImageWithItsOwnCommandLine) {
  World world(kSpec);
  world.settle();
  const Json& server = container_of(world, "faces-server-1-0");
  EXPECT_EQ(server["image"], "registry.example/own:3");
  EXPECT_EQ(server["command"], Json({"python", "train.py"}));
  EXPECT_EQ(server["args"], Json({"--fast"}));
  EXPECT_FALSE(server.contains("readinessProbe"));
  const Json& worker = container_of(world, "faces-worker-0-0");
  EXPECT_EQ(worker["image"], world.options.worker_image);
  EXPECT_TRUE(worker.contains("readinessProbe"));
}

TEST(External, RunsOnNodesOfAnyArchitectureWhichItsWorkersDoNot) {
  World world(kSpec);
  world.settle();
  EXPECT_FALSE(world.pods.at("faces-server-0-0")["spec"].contains("nodeSelector"));
  EXPECT_EQ(world.pods.at("faces-worker-0-0")["spec"]["nodeSelector"]["kubernetes.io/arch"],
            "amd64");
}

TEST(External, IsToldAllInVariables) {
  World world(kSpec);
  world.settle();
  const Json& server = container_of(world, "faces-server-1-0");
  const auto launch = api::parse_launch(api::Role::kServer, {}, [&](std::string_view name) {
    const std::string value = variable(server, std::string(name));
    return value.empty() ? std::nullopt : std::optional(value);
  });
  EXPECT_EQ(launch.job_file, api::kJobFilePath);
  EXPECT_EQ(launch.token_file, api::kJoinTokenPath);
  EXPECT_EQ(launch.control_token_file, api::kControlTokenPath);
  EXPECT_EQ(launch.termination_file, api::kTerminationLogPath);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.replicas, 2);
  EXPECT_EQ(launch.rendezvous, "faces-server-0.faces-server.team.svc:29400");
  EXPECT_GT(launch.attempt, 0);
  EXPECT_EQ(launch.output, "/runs");
  EXPECT_EQ(launch.checkpoint, "/saved");
  EXPECT_TRUE(launch.resume);
  EXPECT_EQ(variable(server, "OUTRIGGER_ROLE"), "server");
  EXPECT_EQ(variable(server, "OUTRIGGER_STATUS_PORT"), "8080");
  EXPECT_EQ(variable(server, "OUTRIGGER_SERVER"), "faces-server-1.faces-server.team.svc:29400");
  EXPECT_EQ(variable(server, "OUTRIGGER_LOG_LEVEL"), "debug") << "what the template says wins";
}

TEST(External, TheFirstRankIsToldItsNumberToo) {
  World world(kSpec);
  world.settle();
  EXPECT_EQ(variable(container_of(world, "faces-server-0-0"), "OUTRIGGER_RANK"), "0");
}

TEST(External, HasTheMountsPortsAndLimitsOfAServer) {
  World world(kSpec);
  world.settle();
  const Json& server = container_of(world, "faces-server-0-0");
  std::vector<std::string> paths;
  for (const Json& mount : server["volumeMounts"]) paths.push_back(mount["mountPath"]);
  EXPECT_THAT(paths, testing::IsSupersetOf({"/etc/outrigger", "/runs", "/saved", "/tmp"}));
  std::vector<int> ports;
  for (const Json& port : server["ports"]) ports.push_back(port["containerPort"]);
  EXPECT_THAT(ports, ElementsAre(29400, 8080));
  EXPECT_EQ(server["securityContext"]["allowPrivilegeEscalation"], false);
}

TEST(External, TakesSeveralGpusOfAPodAndNeedsNoImageOfOursForThem) {
  World world(
      "  server: {engine: External, gpus: 4, template: {spec: {containers: [{name: server, "
      "image: own}]}}}\n");
  world.settle();
  const Json& server = container_of(world, "faces-server-0-0");
  EXPECT_EQ(server["resources"]["limits"]["nvidia.com/gpu"], "4");
  EXPECT_EQ(variable(server, "OUTRIGGER_REPLICAS"), "1")
      << "how it shares its GPUs is its business";
}

TEST(External, IsRestartedSuspendedAndCompletedLikeOurs) {
  World world(kSpec);
  world.settle();
  world.run_all();
  world.settle();
  EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  world.end("faces-server-0-0", {1, "Error", "Traceback: something"});
  world.settle();
  EXPECT_EQ(world.status().last_failure->message, "Traceback: something");
  world.finish_deletions();
  world.settle();
  world.run_all();
  world.settle();
  EXPECT_EQ(world.status().restarts, 1);
  for (const std::string& pod : world.living("server")) world.end(pod, {0});
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "True/Trained");
  EXPECT_THAT(world.living("server"), IsEmpty());
}

TEST(External, OneThatEndsWellBecauseItWasDeletedIsStartedAgainAndNotCounted) {
  for (const char* server : {"faces-server-0-0", "faces-server-1-0"}) {
    World world = running(kSpec);
    world.ask_to_delete(server);
    world.end(server, {0});
    world.settle();
    EXPECT_EQ(world.condition("Complete"), "") << server;
    EXPECT_EQ(world.condition("Failed"), "") << server;
    EXPECT_EQ(world.status().last_failure->reason, "PodDeleted");
    EXPECT_EQ(world.status().last_failure->message, "somebody deleted the pod");
    world.finish_deletions();
    world.settle();
    EXPECT_EQ(world.living("server").size(), 2U);
    EXPECT_EQ(world.status().execution_attempts, 2);
    EXPECT_EQ(world.status().restarts, 0);
  }
}

TEST(External, PeersThatEndWellWithOneThatWasDeletedHaveNotCompletedTheJob) {
  World world = running(kSpec);
  world.end("faces-server-0-0", {0});
  world.ask_to_delete("faces-server-1-0");
  world.settle();
  world.end("faces-server-1-0", {0});
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.living("server").size(), 2U);
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(External, APeerThatIsGoneLeavesTheJobUndone) {
  World world = running(kSpec);
  world.end("faces-server-0-0", {0});
  world.vanish("faces-server-1-0");
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "");
}

TEST(External, OneThatEndsWellInADrainHasNotCompletedTheJob) {
  World world = running(kSpec);
  for (const char* server : {"faces-server-0-0", "faces-server-1-0"}) {
    world.end(server, {0});
    world.add_condition(server, {{"type", "DisruptionTarget"}, {"status", "True"}});
  }
  world.settle();
  EXPECT_EQ(world.condition("Complete"), "");
  EXPECT_EQ(world.condition("Restarting"), "True/Disrupted");
  EXPECT_EQ(world.status().restarts, 0);
}

TEST(External, OneThatEndsWellWhenItIsSuspendedGoesOnWhenItIsResumed) {
  World world = running(kSpec);
  world.spec().suspend = true;
  world.settle();
  for (const char* server : {"faces-server-0-0", "faces-server-1-0"}) world.end(server, {0});
  for (int i = 0; i < 3; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "True/Suspended");
  world.spec().suspend = false;
  world.settle();
  EXPECT_EQ(world.living("server").size(), 2U);
}

}  // namespace
}  // namespace outrigger::controller
