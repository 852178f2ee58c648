#include <gmock/gmock.h>

#include "api/names.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

TEST(Start, OnePassMakesEverythingAndTellsThatTheAttemptBegan) {
  World world("  workers: {replicas: 2}\n");
  const Plan first = world.pass();
  EXPECT_TRUE(first.begins);
  EXPECT_EQ(world.status().execution_attempts, 1);
  EXPECT_EQ(world.status().start_time, world.now);
  EXPECT_EQ(world.status().images.at("server"), "registry.example/outrigger-server:1");
  EXPECT_THAT(world.names(), SizeIs(3));
  EXPECT_FALSE(world.look().begins);
}

TEST(Start, FieldsOfANewerDefinitionAreNamedInAnEvent) {
  World world;
  world.unknown = {"spec.training.newThing", "spec.novelty"};
  const auto events = world.settle();
  EXPECT_THAT(events, Contains(AllOf(Field(&Event::reason, "UnknownFields"),
                                     Field(&Event::message,
                                           StartsWith("spec.training.newThing, spec.novelty: ")))));
  EXPECT_EQ(world.names(), std::vector<std::string>{"faces-server-0-0"});
}

TEST(Start, APassThatFindsObjectsAndNoStatusGoesOnWithTheAttempt) {
  World world("  workers: {replicas: 2}\n");
  const auto began = world.now;
  const Plan first = world.look();
  world.carry_out(first, first.actions.size() - 1);  // and the operator dies
  world.advance(seconds(100));
  EXPECT_TRUE(world.look().begins);
  world.settle();
  EXPECT_THAT(world.names(),
              ElementsAre("faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"));
  EXPECT_EQ(world.status().execution_attempts, 1);
  EXPECT_EQ(world.status().start_time, began) << "when its first pod was made";
}

TEST(Start, AServerThatFailedBeforeAnyStatusWasWrittenCountsAsARestart) {
  World world("  workers: {replicas: 1}\n");
  const Plan first = world.look();
  world.carry_out(first, first.actions.size());
  world.end("faces-server-0-0", {.code = 1});
  world.pass();
  EXPECT_EQ(world.status().execution_attempts, 2);
  EXPECT_EQ(world.status().restarts, 1);
}

TEST(Start, AJobThatWasDoneBeforeAnyStatusWasWrittenIsComplete) {
  World world("  workers: {replicas: 0}\n");
  const Plan first = world.look();
  world.carry_out(first, first.actions.size());
  world.end("faces-server-0-0", {.code = 0});
  world.pass();
  EXPECT_EQ(world.condition("Complete"), "True/Trained");
  EXPECT_EQ(world.status().execution_attempts, 1);
  EXPECT_TRUE(world.status().start_time);
}

TEST(Start, AJobSuspendedBeforeAnyStatusWasWrittenGoesOnInANewAttempt) {
  World world("  workers: {replicas: 1}\n");
  const Plan first = world.look();
  world.carry_out(first, first.actions.size());
  world.spec().suspend = true;
  world.settle();
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.condition("Suspended"), "True/Suspended");
  EXPECT_EQ(world.status().execution_attempts, 1);
  world.spec().suspend = false;
  world.settle();
  EXPECT_EQ(world.status().execution_attempts, 2) << "its spec may be another";
  EXPECT_EQ(world.others.count("ConfigMap/faces-config-2"), 1U);
}

TEST(Start, MakesChildrenThenServersThenWorkers) {
  World world("  workers: {replicas: 1}\n");
  std::vector<std::string> kinds;
  for (const Action& action : world.look().actions)
    kinds.push_back(std::get<Create>(action).head["kind"]);
  EXPECT_THAT(kinds, ElementsAre("Secret", "NetworkPolicy", "Service", "ConfigMap", "Pod", "Pod"));
}

TEST(Start, WhatIsToBeMadeIsATextAndWhatIsAskedForOfIt) {
  const Json pod{{"kind", "Pod"},
                 {"metadata",
                  {{"name", "faces-worker-0-0"},
                   {"namespace", "team"},
                   {"labels", {{"a", "b"}}},
                   {"annotations", {{"c", "d"}}}}},
                 {"spec", {{"nodeName", "one"}, {"containers", Json::array({{{"name", "x"}}})}}}};
  const Create create(ObjectKind::kPod, pod);
  EXPECT_EQ(Json::parse(create.text), pod);
  Json head = pod;
  head["metadata"].erase("annotations");
  head["spec"].erase("containers");
  EXPECT_EQ(create.head, head);
}

TEST(Start, MakesOnePodForEachServerAndWorker) {
  World world("  server: {replicas: 2}\n  workers: {replicas: 3}\n");
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre("faces-server-0-0", "faces-server-1-0", "faces-worker-0-0",
                                         "faces-worker-1-0", "faces-worker-2-0"));
}

TEST(Start, WarnsWhereCheckpointsGoWithThePod) {
  const auto warns = [](const std::string& more) {
    World world(more);
    bool warned = false;
    for (const Event& event : world.pass().events)
      warned = warned || (event.warning && event.reason == "CheckpointsNotKept");
    return warned;
  };
  EXPECT_TRUE(warns(""));
  EXPECT_TRUE(warns("  checkpoint: {path: /saved}\n"));
  EXPECT_TRUE(warns("  checkpoint: {path: /runs/saved}\n"));
  EXPECT_FALSE(warns("  checkpoint: {path: /saved, volumeClaimName: states}\n"));
  const std::string mount = "volumeMounts: [{name: mine, mountPath: /runs}]";
  const std::string with_template =
      "  server: {template: {spec: {containers: [{name: server, " + mount + "}], volumes: [";
  EXPECT_FALSE(warns(with_template + "{name: mine, nfs: {server: a, path: /b}}]}}}\n"));
  EXPECT_TRUE(warns(with_template + "{name: mine, emptyDir: {}}]}}}\n"));
}

TEST(Start, NoWorkersAreALegalNumber) {
  World world("  workers: {replicas: 0}\n");
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre("faces-server-0-0"));
  world.run_all();
  world.settle();
  EXPECT_EQ(world.condition("PodsReady"), "True/Ready");
  EXPECT_EQ(world.status().workers->summary, "0/0");
  EXPECT_EQ(world.status().state, "Running");
}

TEST(Start, TellsHowFarItIs) {
  World world("  workers: {replicas: 1}\n");
  EXPECT_EQ(world.look().status.state, "Starting");
  world.settle();
  EXPECT_EQ(world.condition("PodsScheduled"), "False/Pending");
  EXPECT_EQ(world.condition("Running"), "False/Starting");
  world.run("faces-server-0-0");
  world.settle();
  EXPECT_EQ(world.condition("Running"), "True/ServersReady");
  EXPECT_EQ(world.condition("PodsReady"), "False/NotReady");
  EXPECT_EQ(world.status().workers->summary, "0/1");
  world.run("faces-worker-0-0");
  world.settle();
  EXPECT_EQ(world.condition("PodsScheduled"), "True/Scheduled");
  EXPECT_EQ(world.condition("PodsReady"), "True/Ready");
  EXPECT_EQ(world.status().workers->summary, "1/1");
  EXPECT_EQ(world.status().workers->selector,
            "outrigger.dev/job-name=faces,outrigger.dev/role=worker");
}

TEST(Start, ASecondLookAtTheSameWorldChangesNothing) {
  World world("  workers: {replicas: 2}\n");
  world.settle();
  world.run_all();
  world.settle();
  world.advance(seconds(100));
  const Plan again = world.look();
  EXPECT_THAT(again.actions, IsEmpty());
  EXPECT_THAT(again.events, IsEmpty());
  EXPECT_EQ(again.status, world.status());
}

TEST(Start, DeadlinesCountFromAStartThatIsAlwaysRecorded) {
  World world("  activeDeadlineSeconds: 60\n");
  world.settle();
  ASSERT_TRUE(world.status().start_time);
  EXPECT_EQ(world.look().look_again, *world.status().start_time + seconds(60));
}

TEST(Start, AJobThatIsBeingDeletedGetsNoMorePods) {
  World world;
  world.job.metadata.deletion_time = world.now;
  const Plan plan = world.look();
  EXPECT_THAT(plan.actions, IsEmpty());
  EXPECT_EQ(plan.status, world.status());
}

TEST(Start, PodsOfAFormerJobOfTheNameAreCountedPastAndLeftAlone) {
  World world;
  world.settle();
  Json former = world.pods.at("faces-server-0-0");
  former["metadata"]["ownerReferences"][0]["uid"] = "another";
  World next;
  next.pods["faces-server-0-0"] = former;
  next.settle();
  EXPECT_THAT(next.names(), ElementsAre("faces-server-0-0", "faces-server-0-1"));
  EXPECT_EQ(next.already_exists, 0);
}

}  // namespace
}  // namespace outrigger::controller
