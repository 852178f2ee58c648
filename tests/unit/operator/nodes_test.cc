#include <gmock/gmock.h>

#include "operator/read_pod.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kServer = "faces-server-0-0";
constexpr const char* kNode = "node-of-faces-server-0-0";
// Of the server's grace and of the margin behind it.
constexpr seconds kOverdue{120 + 30 + 1};

World with_dead_node() {
  World world;
  world.settle();
  world.run_all();
  world.settle();
  world.dead.insert(kNode);
  world.add_condition(kServer, {{"type", "DisruptionTarget"}, {"status", "True"}});
  world.ask_to_delete(kServer);
  world.settle();
  return world;
}

TEST(Nodes, AServerOnADeadNodeBlocksItsSuccessorNoLongerThanItsGrace) {
  World world = with_dead_node();
  EXPECT_THAT(world.names(), ElementsAre(kServer));
  EXPECT_EQ(world.look().look_again, world.now + kOverdue);
  world.advance(kOverdue);
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre(kServer, "faces-server-0-1"));
  EXPECT_EQ(world.status().restarts, 0);
  EXPECT_EQ(world.status().execution_attempts, 2);
}

TEST(Nodes, OnlyNodesOfPodsThatShouldBeGoneAreAskedFor) {
  World world = with_dead_node();
  EXPECT_THAT(nodes_wanted(world.observe().pods, world.now), IsEmpty());
  world.advance(kOverdue);
  EXPECT_THAT(nodes_wanted(world.observe().pods, world.now), ElementsAre(kNode));
}

TEST(Nodes, APodIsTakenByForceOnlyFromANodeThatIsGoneOrOutOfService) {
  struct Case {
    std::optional<NodeState> node;
    bool forced;
  };
  for (const Case& one : {Case{std::nullopt, false}, Case{NodeState{true, false}, false},
                          Case{NodeState{true, true}, true}, Case{NodeState{false, false}, true}}) {
    World world = with_dead_node();
    world.advance(kOverdue);
    if (one.node) world.nodes[kNode] = *one.node;
    world.settle();
    EXPECT_EQ(world.pods.contains(kServer), !one.forced);
  }
}

TEST(Nodes, AWorkerOnANodeThatDoesNotAnswerHoldsUpNothing) {
  constexpr const char* kWorker = "faces-worker-0-0";
  World world("  workers: {replicas: 1}\n");
  world.settle();
  world.run_all();
  world.settle();
  world.dead.insert("node-of-faces-worker-0-0");
  world.spec().suspend = true;
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre(kWorker));
  EXPECT_NE(world.condition("Suspended"), "True/Suspended");
  const auto due = world.look().look_again;
  ASSERT_TRUE(due);
  world.advance(*due - world.now);
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(world.status().state, "Suspended");
}

TEST(Nodes, APodWithinItsGraceIsNeverTakenByForce) {
  World world = with_dead_node();
  world.nodes[kNode] = {true, true};
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre(kServer));
}

TEST(Nodes, TheTaintThatPeopleSetIsRead) {
  EXPECT_FALSE(read_node(Json{{"spec", Json::object()}}).out_of_service);
  EXPECT_FALSE(read_node(Json{{"spec",
                               {{"taints", Json::array({{{"key", "node.kubernetes.io/unreachable"},
                                                         {"effect", "NoExecute"}}})}}}})
                   .out_of_service);
  EXPECT_TRUE(
      read_node(Json{{"spec",
                      {{"taints", Json::array({{{"key", "node.kubernetes.io/out-of-service"},
                                                {"value", "nodeshutdown"},
                                                {"effect", "NoExecute"}}})}}}})
          .out_of_service);
}

}  // namespace
}  // namespace outrigger::controller
