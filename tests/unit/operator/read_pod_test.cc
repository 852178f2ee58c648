#include "operator/read_pod.h"

#include <gtest/gtest.h>

#include "operator/policy/pods.h"

namespace outrigger::controller {
namespace {

// As a kubelet writes it, shortened.
constexpr const char* kPod = R"({
  "metadata": {"name": "faces-worker-3-2", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"outrigger.dev/job-name": "faces", "outrigger.dev/role": "worker",
               "outrigger.dev/index": "3", "outrigger.dev/attempt": "2"},
    "annotations": {"outrigger.dev/failures": "4"},
    "ownerReferences": [{"uid": "other"}, {"uid": "job", "controller": true}]},
  "spec": {"nodeName": "n1"},
  "status": {"phase": "Running", "podIP": "10.1.2.3",
    "conditions": [{"type": "Ready", "status": "False"}, {"type": "DisruptionTarget", "status": "True"}],
    "containerStatuses": [
      {"name": "sidecar", "state": {"running": {}}},
      {"name": "worker", "imageID": "r/w@sha256:1",
       "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "words",
                 "startedAt": "2026-01-01T00:00:05Z", "finishedAt": "2026-01-01T00:01:00Z"}}}]}})";

TEST(ReadPod, TakesWhatPoliciesAskFor) {
  const auto pod = read_pod(Json::parse(kPod));
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->role, api::Role::kWorker);
  EXPECT_EQ(pod->index, 3);
  EXPECT_EQ(pod->number, 2);
  EXPECT_EQ(pod->attempt, 2);
  EXPECT_EQ(pod->failures, 4);
  EXPECT_EQ(pod->job_uid, "job");
  EXPECT_EQ(pod->node, "n1");
  EXPECT_EQ(pod->image_id, "r/w@sha256:1");
  EXPECT_TRUE(pod->conditions.contains("DisruptionTarget"));
  EXPECT_FALSE(pod->conditions.contains("Ready")) << "it is there, and False";
  ASSERT_TRUE(pod->ended);
  EXPECT_EQ(pod->ended->exit_code, 137);
  EXPECT_EQ(pod->ended->reason, "OOMKilled");
  EXPECT_TRUE(is_over(*pod)) << "our container has ended, though the pod runs on";
  EXPECT_TRUE(pod->runs) << "the sidecar does";
}

TEST(ReadPod, IsReadyAsItsOwnContainerIs) {
  struct Case {
    bool own;
    const char* all;    // its containers
    const char* whole;  // the pod
    bool ready;
  };
  for (const Case& one : {Case{true, "True", "True", true}, Case{false, "False", "False", false},
                          Case{true, "False", "False", true},     // a sidecar has ended
                          Case{true, "True", "False", false}}) {  // its node does not answer
    Json object = Json::parse(kPod);
    Json& status = object["status"];
    status["conditions"] = Json::array({{{"type", "Ready"}, {"status", one.whole}},
                                        {{"type", "ContainersReady"}, {"status", one.all}}});
    status["containerStatuses"][0]["ready"] = !one.own;
    status["containerStatuses"][1] = {
        {"name", "worker"}, {"ready", one.own}, {"state", {{"running", Json::object()}}}};
    EXPECT_EQ(read_pod(object)->ready, one.ready) << one.own << one.all << one.whole;
  }
}

TEST(ReadPod, WaitingForTheImageIsNoTroubleAndFailingToPullItIs) {
  Json object = Json::parse(kPod);
  Json& statuses = object["status"]["containerStatuses"];
  statuses = Json::array(
      {{{"name", "worker"}, {"state", {{"waiting", {{"reason", "ContainerCreating"}}}}}}});
  EXPECT_FALSE(read_pod(object)->waiting);
  statuses[0]["state"]["waiting"] = {{"reason", "ImagePullBackOff"}, {"message", "no such image"}};
  ASSERT_TRUE(read_pod(object)->waiting);
  EXPECT_EQ(read_pod(object)->waiting->message, "no such image");
}

TEST(ReadPod, AnInitContainerThatCannotStartIsTroubleToo) {
  Json object = Json::parse(kPod);
  object["status"]["containerStatuses"] = Json::array();
  object["status"]["initContainerStatuses"] = Json::array(
      {{{"name", "fetch"}, {"state", {{"waiting", {{"reason", "CreateContainerError"}}}}}}});
  EXPECT_EQ(read_pod(object)->waiting->reason, "CreateContainerError");
}

TEST(ReadPod, AnInitContainerThatFailedIsWhyThePodDid) {
  Json object = Json::parse(kPod);
  Json& status = object["status"];
  status = {{"phase", "Failed"}};
  status["containerStatuses"] = Json::array(
      {{{"name", "worker"}, {"state", {{"waiting", {{"reason", "PodInitializing"}}}}}}});
  status["initContainerStatuses"] =
      Json::array({{{"name", "prepare"}, {"state", {{"terminated", {{"exitCode", 0}}}}}},
                   {{"name", "fetch"},
                    {"state",
                     {{"terminated",
                       {{"exitCode", 3}, {"reason", "Error"}, {"message", "no such bucket"}}}}}}});
  const auto pod = read_pod(object);
  EXPECT_FALSE(pod->ended) << "its exit codes are not ours";
  ASSERT_TRUE(pod->ended_for);
  EXPECT_EQ(pod->ended_for->reason, "InitContainerFailed");
  EXPECT_EQ(pod->ended_for->message, "init container fetch ended with exit code 3: no such bucket");
  status["phase"] = "Running";
  EXPECT_FALSE(read_pod(object)->ended_for) << "a sidecar that will start again";
}

TEST(ReadPod, ConditionsThatEveryPodHasAndOthersAreToldApart) {
  ConditionTypes types;
  EXPECT_FALSE(types.contains_any_of({"Ready", "DisruptionTarget"}));
  for (const char* type : {"Initialized", "PodScheduled", "DisruptionTarget", "DisruptionTarget"})
    types.insert(type);
  EXPECT_TRUE(types.contains("PodScheduled"));
  EXPECT_FALSE(types.contains("Ready"));
  EXPECT_TRUE(types.contains_any_of({"Ready", "DisruptionTarget"}));
  EXPECT_TRUE(types.contains_any_of({"Initialized"}));
  EXPECT_FALSE(types.contains_any_of({"Ready", "team.example/Drained"}));
}

TEST(ReadPod, AnObjectWithoutOurLabelsIsNotOurs) {
  for (const char* text :
       {"{}", "null", "[]", R"({"metadata": 3})", R"({"metadata": {"name": "faces-server-0-0"}})"})
    EXPECT_EQ(read_pod(Json::parse(text)), std::nullopt) << text;
}

TEST(ReadPod, WhateverIsOfAnotherKindThanItShouldBeIsPassedOver) {
  Json object = Json::parse(kPod);
  for (auto& [part, value] : object.items()) {
    for (auto& [field, inner] : value.items()) {
      const Json kept = inner;
      for (const Json& wrong : {Json(), Json(7), Json("x"), Json::array({1}), Json::object()}) {
        inner = wrong;
        std::optional<Pod> pod;
        EXPECT_NO_THROW(pod = read_pod(object)) << part << "." << field << ": " << wrong;
        if (part != "metadata") {
          ASSERT_TRUE(pod) << part << "." << field << ": " << wrong;
          EXPECT_EQ(pod->index, 3);
        }
      }
      inner = kept;
    }
  }
}

}  // namespace
}  // namespace outrigger::controller
