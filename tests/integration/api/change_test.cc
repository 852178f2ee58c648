#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "cluster.h"
#include "corpus.h"

namespace outrigger::api {
namespace {

/// A change of the job "every field" by a merge patch, and whether it is let through while the job
/// runs, and while it is suspended.
struct Change {
  const char* what;
  const char* patch;
  bool running;
  bool suspended;
};

constexpr Change kChanges[] = {
    {"suspend", R"({"spec": {"suspend": true}})", true, true},
    {"the number of workers", R"({"spec": {"workers": {"replicas": 5}}})", true, true},
    {"the most workers", R"({"spec": {"workers": {"maxReplicas": 20}}})", true, true},
    {"autoscaling unset", R"({"spec": {"workers": {"autoscaling": null}}})", true, true},
    {"the cut", R"({"spec": {"split": {"cut": "Input", "maxBytesPerSecond": null}}})", true, true},
    {"deadlines", R"({"spec": {"activeDeadlineSeconds": null, "startupDeadlineSeconds": 5}})", true,
     true},
    {"what happens at the end",
     R"({"spec": {"ttlSecondsAfterFinished": 5, "cleanPodPolicy": "All"}})", true, true},
    {"restarts", R"({"spec": {"failurePolicy": {"maxRestarts": 9}}})", true, true},
    {"the server", R"({"spec": {"server": {"gpuResourceName": "amd.com/gpu"}}})", false, true},
    {"the server's template", R"({"spec": {"server": {"template": {"spec": {"nodeName": "b"}}}}})",
     false, true},
    {"the workers' template", R"({"spec": {"workers": {"template": {"spec": {"nodeName": "b"}}}}})",
     false, true},
    {"the workers' template unset", R"({"spec": {"workers": {"template": null}}})", false, true},
    {"the workers' template with other members",
     R"({"spec": {"workers": {"template": {"spec": null, "metadata": {"labels": {"a": "b"}}}}}})",
     false, true},
    {"the queue", R"({"spec": {"schedulingPolicy": {"queue": "other"}}})", false, true},
    {"the queue unset", R"({"spec": {"schedulingPolicy": null}})", false, true},
    {"the seed", R"({"spec": {"training": {"seed": 2}}})", false, false},
    {"the seed unset", R"({"spec": {"training": {"seed": null}}})", true, true},
    {"the data", R"({"spec": {"data": {"maxBadFraction": 0.5}}})", false, false},
    {"augmentation unset", R"({"spec": {"data": {"augment": null}}})", false, false},
    {"the model", R"({"spec": {"model": {"name": "resnet18"}}})", false, false},
    {"who runs it", R"({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}})", false, false},
    {"the network", R"({"spec": {"network": null}})", false, false},
    {"the checkpoint", R"({"spec": {"checkpoint": {"keep": 7}}})", false, false},
    {"failure rules", R"({"spec": {"failurePolicy": {"rules": null}}})", false, false},
    {"the failure policy unset", R"({"spec": {"failurePolicy": null}})", false, false},
    {"the output", R"({"spec": {"output": {"path": "/elsewhere"}}})", false, false},
};

Json changeable_job(const std::string& name, bool suspended) {
  Json job = base_jobs()[1].object;
  job["metadata"]["name"] = name;
  job["spec"]["suspend"] = suspended;
  for (const char* role : {"server", "workers"})
    job["spec"][role]["template"] = {{"spec", {{"nodeSelector", {{"a", "b"}}}}}};
  return job;
}

class Changes : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = Cluster::missing(); !why.empty()) GTEST_SKIP() << why;
    cluster_.emplace();
  }

  void create(const Json& job) {
    const auto path = cluster_->write("job.json", job.dump());
    const auto answer = cluster_->kubectl("create -f '" + path.string() + "'");
    ASSERT_EQ(answer.status, 0) << answer.output;
  }

  CommandResult patch(const std::string& name, const std::string& text,
                      const std::string& more = "--dry-run=server") {
    const auto path = cluster_->write("patch.json", text);
    return cluster_->kubectl("patch tjob " + name + " --type=merge " + more + " --patch-file '" +
                             path.string() + "'");
  }

  std::optional<Cluster> cluster_;
};

TEST_F(Changes, AreLetThroughAsTheTableOfFieldsSays) {
  create(changeable_job("running", false));
  create(changeable_job("suspended", true));
  for (const Change& change : kChanges) {
    const auto running = patch("running", change.patch);
    EXPECT_EQ(running.status == 0, change.running) << change.what << ": " << running.output;
    const auto suspended = patch("suspended", change.patch);
    EXPECT_EQ(suspended.status == 0, change.suspended) << change.what << ": " << suspended.output;
  }
}

TEST_F(Changes, LayersKeepTheirOrder) {
  Json job = base_jobs()[2].object;
  job["metadata"]["name"] = "layers";
  create(job);
  std::swap(job["spec"]["model"]["layers"][2], job["spec"]["model"]["layers"][3]);
  const auto answer = patch("layers", Json{{"spec", {{"model", job["spec"]["model"]}}}}.dump());
  EXPECT_NE(answer.status, 0);
  EXPECT_NE(answer.output.find("spec.model.layers"), std::string::npos) << answer.output;
}

TEST_F(Changes, AnEndedJobKeepsItsSpec) {
  create(changeable_job("ended", false));
  const auto ends = patch("ended", R"({"status": {"completionTime": "2026-01-02T03:04:05Z"}})",
                          "--subresource=status");
  ASSERT_EQ(ends.status, 0) << ends.output;
  const auto answer = patch("ended", R"({"spec": {"suspend": true}})");
  EXPECT_NE(answer.status, 0);
  EXPECT_NE(answer.output.find("the job has ended"), std::string::npos) << answer.output;
  for (const char* kept : {R"({"workers": {"replicas": 1}})", R"({"activeDeadlineSeconds": null})",
                           R"({"failurePolicy": {"maxRestarts": 9}})"}) {
    const auto refused = patch("ended", std::string(R"({"spec": )") + kept + "}");
    EXPECT_NE(refused.output.find("the job has ended"), std::string::npos) << refused.output;
  }
  const auto tidied =
      patch("ended", R"({"spec": {"ttlSecondsAfterFinished": 5, "cleanPodPolicy": "All"}})");
  EXPECT_EQ(tidied.status, 0) << tidied.output;
  EXPECT_EQ(patch("ended", R"({"metadata": {"labels": {"a": "b"}}})").status, 0);
}

TEST_F(Changes, ScaleWritesTheNumberOfWorkersAndNothingElse) {
  create(changeable_job("scaled", false));
  const auto answer = cluster_->kubectl("scale tjob scaled --replicas 7");
  ASSERT_EQ(answer.status, 0) << answer.output;
  const auto seen = cluster_->kubectl("get tjob scaled -o jsonpath='{.spec.workers.replicas}'");
  EXPECT_EQ(seen.output, "7");
  EXPECT_NE(cluster_->kubectl("scale tjob scaled --replicas 17").status, 0) << "maxReplicas is 16";
}

TEST_F(Changes, ColumnsShowTheStatus) {
  create(changeable_job("shown", false));
  const auto status = patch("shown",
                            R"({"status": {"state": "Running", "restarts": 2,
    "workers": {"replicas": 4, "selector": "a=b", "summary": "3/4"},
    "progress": {"percent": 45, "remainingSeconds": 60}, "split": {"plan": 4, "stallPercent": 3}}})",
                            "--subresource=status");
  ASSERT_EQ(status.status, 0) << status.output;
  const auto wide = cluster_->kubectl("get outrigger shown -o wide");
  for (const char* text : {"STATE", "PROGRESS", "WORKERS", "STALL", "RESTARTS", "AGE", "ETA",
                           "PLAN", "QUEUE", "Running", "45", "3/4", "team-a"})
    EXPECT_NE(wide.output.find(text), std::string::npos) << text << " in\n" << wide.output;
}

}  // namespace
}  // namespace outrigger::api
