#include "operator/controller/resources.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kube/cache/watch.h"
#include "kube/object/object.h"
#include "operator/controller/caches.h"

namespace outrigger::controller {
namespace {

std::string text_of(const std::optional<api::Time>& time) {
  return time ? api::to_string(*time) : "-";
}
std::string text_of(const Boxed<Why>& why) { return why ? why->reason + "/" + why->message : "-"; }

// All that a cache keeps of a pod, and who it is.
std::string kept_of(const Json& object) {
  const PodRecord record = keep_pod(object);
  const PodState& pod = record.pod;
  std::string text = kube::key_of(object).text() + " " + kube::uid_of(object) + " " +
                     kube::resource_version_of(object) + " " + record.job.get() +
                     (record.ours ? " ours" : "") + " on " + pod.node.get() + " of " +
                     pod.job_uid.get() + " " + pod.ip + " " + pod.image_id.get();
  for (const int number :
       {static_cast<int>(pod.role), pod.index, pod.number, pod.attempt, pod.failures,
        static_cast<int>(pod.phase), int{pod.ready}, int{pod.runs}})
    text += " " + std::to_string(number);
  for (const auto& time : {pod.created, pod.taken, pod.started, pod.deleting})
    text += " " + text_of(time);
  for (const auto& why : {pod.ended_for, pod.unscheduled, pod.waiting}) text += " " + text_of(why);
  for (const char* type : {"Ready", "PodScheduled", "DisruptionTarget", "team.example/Drained"}) {
    if (pod.conditions.contains(type)) text += std::string(" ") + type;
  }
  if (pod.ended)
    text += " ended " + std::to_string(pod.ended->exit_code) + " " + pod.ended->reason + " " +
            pod.ended->message + " " + text_of(pod.ended->at);
  return text;
}

// That pod as a server's, of which more is read.
std::string as_server(std::string pod) {
  const std::string role = R"("outrigger.dev/role":"worker")";
  return pod.replace(pod.find(role), role.size(), R"("outrigger.dev/role":"server")");
}

// A pod as an API server tells of it, with much that nobody reads, and this status.
std::string pod_with(const std::string& status, const std::string& deletion = "") {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"faces-worker-3-2","generateName":"x",
    "namespace":"team","uid":"u","resourceVersion":"17","generation":2,
    "creationTimestamp":"2026-01-01T00:00:00Z",)" +
         deletion + R"(
    "labels":{"outrigger.dev/job-name":"faces","outrigger.dev/role":"worker","team":"name",
      "outrigger.dev/index":"3","outrigger.dev/attempt":"2","outrigger.dev/managed-by":"o"},
    "annotations":{"outrigger.dev/failures":"4","cni":"{\"ips\":[\"10.1.2.3\"]}"},
    "ownerReferences":[{"apiVersion":"v1","kind":"Job","name":"j","uid":"other"},
      {"apiVersion":"outrigger.dev/v1alpha1","kind":"TrainingJob","name":"faces","uid":"job",
       "controller":true,"blockOwnerDeletion":true}],
    "finalizers":["a/b"],
    "managedFields":[{"manager":"kubelet","fieldsV1":{"f:status":{"f:phase":{}}}}]},
   "spec":{"volumes":[{"name":"v","emptyDir":{}}],"nodeName":"n1","hostname":"h",
    "containers":[{"name":"worker","image":"i","args":["--a"],"resources":{}}],
    "initContainers":[{"name":"fetch","image":"i"}],"tolerations":[],"priority":0},
   "status":)" +
         status + "}";
}

const std::string kTrueConditions =
    R"("conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,
         "lastTransitionTime":"2026-01-01T00:00:00Z"},
        {"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"},
        {"type":"team.example/Drained","status":"True"}],"qosClass":"Burstable","hostIP":"10.0.0.1",
        "hostIPs":[{"ip":"10.0.0.1"}],"podIPs":[{"ip":"10.1.2.3"}],"startTime":"2026-01-01T00:00:00Z")";

std::vector<std::string> statuses() {
  return {R"({"phase":"Running","podIP":"10.1.2.3",)" + kTrueConditions + R"(,
        "containerStatuses":[{"name":"worker","imageID":"r/w@sha256:1","image":"r/w","ready":true,
          "restartCount":0,"containerID":"c://1","lastState":{},"started":true,
          "state":{"running":{"startedAt":"2026-01-01T00:00:05Z"}}}]})",
          R"({"phase":"Failed",)" + kTrueConditions + R"(,
        "containerStatuses":[{"name":"sidecar","state":{"running":{}}},
         {"name":"worker","imageID":"r/w@sha256:1","lastState":{"terminated":{"exitCode":1}},
          "state":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"{\"step\":3}",
            "startedAt":"2026-01-01T00:00:05Z","finishedAt":"2026-01-01T00:01:00Z",
            "containerID":"c://1"}}}]})",
          R"({"phase":"Pending","containerStatuses":[{"name":"worker","image":"r/w","imageID":"",
          "state":{"waiting":{"reason":"ImagePullBackOff","message":"no such image"}}}]})",
          R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
          "reason":"Unschedulable","message":"0/3 nodes are available","observedGeneration":1}]})",
          R"({"phase":"Failed","reason":"Evicted","message":"The node was low on memory.",
          "conditions":[{"type":"DisruptionTarget","status":"True","reason":"TerminationByKubelet"}]})",
          R"({"phase":"Failed","reason":"UnexpectedAdmissionError",
          "message":"Allocate failed: no healthy devices","startTime":"2026-01-01T00:00:00Z"})",
          R"({"phase":"Failed","initContainerStatuses":[{"name":"fetch","ready":false,
          "state":{"terminated":{"exitCode":3,"reason":"Error","message":"no such bucket"}}}],
          "containerStatuses":[{"name":"worker",
          "state":{"waiting":{"reason":"PodInitializing"}}}]})",
          R"({"phase":"Pending","initContainerStatuses":[{"name":"fetch",
          "state":{"waiting":{"reason":"CreateContainerError","message":"m"}}}]})",
          R"({"phase":"Failed","message":"caf\u00e9: the library's parser reads this"})",
          "{}",
          "null"};
}

void expect_all_that_is_kept(const std::string& text) {
  const std::string whole = kept_of(Json::parse(text));
  EXPECT_NE(whole.find("team/faces-worker-3-2 u 17 faces ours on n1 of job"), whole.npos) << whole;
  const auto line =
      kube::parse_watch_line(R"({"type":"MODIFIED","object":)" + text + "}", {}, kReadOfPods);
  EXPECT_EQ(kept_of(line.object), whole) << text;
  const Json list = kube::parse_json(
      R"({"kind":"PodList","metadata":{"continue":"more"},"items":[)" + text + "]}", {},
      kReadOfPods);
  EXPECT_EQ(kept_of(list["items"][0]), whole) << text;
  EXPECT_EQ(list["metadata"]["continue"], "more");
  EXPECT_EQ(kept_of(kube::parse_json(text, {}, kReadOfPods)), whole) << text;
}

TEST(ReadOfPods, IsAllThatACacheKeepsOfThem) {
  for (const std::string& status : statuses()) {
    for (const char* deletion :
         {"", R"("deletionTimestamp":"2026-01-01T00:02:00Z","deletionGracePeriodSeconds":30,)"}) {
      expect_all_that_is_kept(pod_with(status, deletion));
      expect_all_that_is_kept(as_server(pod_with(status, deletion)));
    }
  }
}

TEST(ReadOfPods, IsLittleOfWhatAnApiServerTells) {
  const std::string text = pod_with(statuses().front());
  const Json read = kube::parse_json(R"({"object":)" + text + "}", {}, kReadOfPods)["object"];
  EXPECT_EQ(read["spec"], Json({{"nodeName", "n1"}}));
  EXPECT_EQ(read["metadata"]["labels"].size(), 4U);
  EXPECT_FALSE(read["metadata"].contains("managedFields"));
  EXPECT_FALSE(read["status"].contains("hostIP"));
  EXPECT_FALSE(read["status"]["containerStatuses"][0].contains("containerID"));
  EXPECT_LT(read.dump().size(), Json::parse(text).dump().size() / 2);
}

TEST(ReadOfPods, HoldsTheErrorsAndBookmarksOfAWatch) {
  const auto parse = [](const std::string& text) {
    return kube::parse_watch_line(text, {}, kReadOfPods);
  };
  const auto error = parse(
      R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},
          "status":"Failure","message":"too old","reason":"Expired","code":410}})");
  EXPECT_EQ(error.kind, kube::WatchLine::Kind::kError);
  EXPECT_EQ(error.object["code"], 410);
  EXPECT_EQ(error.object["message"], "too old");
  const auto bookmark = parse(
      R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":
          {"resourceVersion":"12746","creationTimestamp":null},"spec":{"containers":null},
          "status":{}}})");
  EXPECT_EQ(bookmark.kind, kube::WatchLine::Kind::kBookmark);
  EXPECT_EQ(kube::resource_version_of(bookmark.object), "12746");
}

}  // namespace
}  // namespace outrigger::controller
