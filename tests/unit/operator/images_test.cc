#include <gtest/gtest.h>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

constexpr const char* kDigest =
    "@sha256:0000000000000000000000000000000000000000000000000000000000000001";

std::string after_running(World& world, const std::string& image_id) {
  world.settle();
  world.run_all();
  world.pods.at("faces-server-0-0")["status"]["containerStatuses"][0]["imageID"] = image_id;
  world.settle();
  return world.status().images.at("server");
}

std::string image_of(const World& world, const std::string& pod) {
  return world.pods.at(pod)["spec"]["containers"][0]["image"];
}

TEST(Images, ATagBecomesTheDigestThatTheFirstNodeSaw) {
  World world;
  EXPECT_EQ(after_running(world, std::string("registry.example/outrigger-server") + kDigest),
            std::string("registry.example/outrigger-server") + kDigest);
}

TEST(Images, AShortNameOfDockerHubIsKnownUnderItsFullOne) {
  World world;
  world.options.server_image = "outrigger-server:1";
  EXPECT_EQ(after_running(world, std::string("docker.io/library/outrigger-server") + kDigest),
            std::string("outrigger-server") + kDigest);
}

TEST(Images, APortInTheNameIsNoTag) {
  World world;
  world.options.server_image = "registry:5000/server:v1";
  EXPECT_EQ(after_running(world, std::string("registry:5000/server") + kDigest),
            std::string("registry:5000/server") + kDigest);
}

TEST(Images, AnImageWithoutADigestOfItsRepositoryKeepsItsTag) {
  for (const char* id :
       {"", "sha256:0000000000000000000000000000000000000000000000000000000000000001",
        "docker.io/library/import-2026@sha256:"
        "0000000000000000000000000000000000000000000000000000000000000001"}) {
    World world;
    EXPECT_EQ(after_running(world, id), "registry.example/outrigger-server:1") << id;
  }
}

TEST(Images, ReplacementsRunTheDigestThoughTheOperatorHasANewerImage) {
  World world("  workers: {replicas: 1}\n");
  after_running(world, std::string("registry.example/outrigger-server") + kDigest);
  world.options.server_image = "registry.example/outrigger-server:2";
  world.options.worker_image = "registry.example/outrigger-worker:2";
  world.end("faces-server-0-0", {22});
  world.settle();
  world.vanish("faces-worker-0-0");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(image_of(world, "faces-server-0-1"),
            std::string("registry.example/outrigger-server") + kDigest);
  EXPECT_EQ(image_of(world, "faces-worker-0-0"), "registry.example/outrigger-worker:1");
}

TEST(Images, ANewerOperatorChangesNoPodThatRuns) {
  World world("  workers: {replicas: 1}\n");
  world.settle();
  world.run_all();
  world.settle();
  world.options.server_image = "registry.example/outrigger-server:2";
  EXPECT_TRUE(world.look().actions.empty());
}

TEST(Images, ATemplateNamesItsOwn) {
  World world("  server: {template: {spec: {containers: [{name: server, image: mine:3}]}}}\n");
  world.settle();
  EXPECT_EQ(image_of(world, "faces-server-0-0"), "mine:3");
}

}  // namespace
}  // namespace outrigger::controller
