#include "operator/controller/reconciler.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/operator/controller/manager_scene.h"

namespace outrigger::controller {
namespace {

using testing::SizeIs;

/// A reconciler that works when the test says so, over caches that follow the server.
class ReconcilerTest : public ManagerScene {
 protected:
  static constexpr const char* kJobKey = "team/faces";

  ~ReconcilerTest() override { caches_.stop(); }

  // The job's first attempt is made, the caches show it, and it was looked at since.
  bool made_first_attempt() {
    apply(job());
    caches_.start();
    if (!caches_.wait_for_sync({}, [] {})) return false;
    const bool made = eventually([&] {
      reconciler_.reconcile(kJobKey);
      return condition("Running") == "False/Starting" && caches_.pods(kJobKey).size() == 3 &&
             caches_.children(ObjectKind::kConfigMap, kJobKey).size() == 1;
    });
    reconciler_.reconcile(kJobKey);
    return made;
  }

  kube::Client client_{server_.config(), {.dropped = kUnread}};  // as the operator's
  Memory memory_;
  Caches caches_{client_, {}, [](const auto&, const auto&) { return nullptr; }};
  kube::EventRecorder events_{client_, {}};
  telemetry::Metrics page_;
  ControllerMetrics metrics_{page_};
  Reconciler reconciler_{client_, caches_, memory_, events_, metrics_, world_.options};
};

TEST_F(ReconcilerTest, AConfigMapIsDeletedOnceThoughTheCacheShowsItForAWhile) {
  ASSERT_TRUE(made_first_attempt());
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  ASSERT_TRUE(eventually([&] { return caches_.pods(kJobKey).size() == 2; }));
  server_.silence_watches();
  for (int pass = 0; pass < 5; ++pass) reconciler_.reconcile(kJobKey);
  EXPECT_EQ(status()["executionAttempts"], 2);
  EXPECT_THAT(server_.requests("DELETE /api/v1/namespaces/team/configmaps/faces-config-1"),
              SizeIs(1));
}

// As if the pods had been made a minute ago, and no watch had told of them.
TEST_F(ReconcilerTest, AServerThatASilentWatchDoesNotShowIsNotTakenForGone) {
  apply(job());
  caches_.start();
  ASSERT_TRUE(caches_.wait_for_sync({}, [] {}));
  server_.silence_watches();
  ASSERT_TRUE(eventually([&] {
    reconciler_.reconcile(kJobKey);
    return condition("Running") == "False/Starting";
  }));
  const auto memory = memory_.find(kJobKey);
  const auto age = [&] {
    for (const std::string& name : pods()) {
      memory->wrote_pod(get(std::string(kPodsPath) + "/" + name),
                        SystemClock().now() - std::chrono::seconds(61));
    }
  };
  age();
  for (int pass = 0; pass < 3; ++pass) reconciler_.reconcile(kJobKey);
  EXPECT_EQ(status()["executionAttempts"], 1);
  EXPECT_THAT(pods(), SizeIs(3));
  age();
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  for (int pass = 0; pass < 3; ++pass) reconciler_.reconcile(kJobKey);
  EXPECT_EQ(status()["executionAttempts"], 2) << "it is gone";
}

TEST_F(ReconcilerTest, AStatusThatWasWrittenThoughItsAnswerIsLostIsToldOf) {
  ASSERT_TRUE(made_first_attempt());
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  ASSERT_TRUE(eventually([&] { return caches_.pods(kJobKey).size() == 2; }));
  server_.fail("PUT", {.status = 500, .after = true});
  ASSERT_TRUE(eventually([&] {
    reconciler_.reconcile(kJobKey);
    return status()["executionAttempts"] == 2;
  }));
  EXPECT_TRUE(events_.flush(TimePoint::max()));
  const auto events = client_.list(kube::kEvents).take();
  EXPECT_EQ(
      std::ranges::count_if(events, [](const Json& one) { return one["reason"] == "Restarting"; }),
      1);
}

// The chart's role may not get a job, and the operator's client drops fields of what it gets.
TEST_F(ReconcilerTest, AJobThatWasEditedMeanwhileIsReadWithAllOfItsTemplates) {
  ASSERT_TRUE(made_first_attempt());
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  ASSERT_TRUE(eventually([&] { return caches_.pods(kJobKey).size() == 2; }));
  server_.silence_watches();
  const std::string path = kTrainingJobs.path("team") + "/faces";
  Json edited = get(path);
  edited["metadata"]["generation"] = 2;
  edited["spec"]["workers"]["replicas"] = 3;
  edited["spec"]["workers"]["template"]["spec"] = Json::parse(
      R"({"tolerations": [{"key": "pool", "operator": "Exists"}],
          "containers": [{"name": "worker", "resources": {"requests": {"cpu": "2"}}}]})");
  apply_again(edited);
  ASSERT_TRUE(eventually([&] {
    reconciler_.reconcile(kJobKey);
    return get(std::string(kPodsPath) + "/faces-worker-2-0").contains("spec");
  }));
  EXPECT_EQ(status()["executionAttempts"], 2);
  Json spec = get(std::string(kPodsPath) + "/faces-worker-2-0")["spec"];
  EXPECT_EQ(spec["tolerations"][0]["key"], "pool");
  EXPECT_EQ(spec["containers"][0]["resources"]["requests"]["cpu"], "2");
  EXPECT_THAT(server_.requests("GET " + path), testing::IsEmpty());
}

// As if the API server had been put back to a backup: what was written last is gone.
TEST_F(ReconcilerTest, AJobOfAnApiServerThatWasRestoredGoesOn) {
  ASSERT_TRUE(made_first_attempt());
  const auto lost = std::make_shared<kube::Cached<JobRecord>>(*caches_.job({"team", "faces"}));
  lost->resource_version = "900000";
  memory_.find(kJobKey)->wrote_job(lost, SystemClock().now());
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  EXPECT_TRUE(eventually([&] {
    reconciler_.reconcile(kJobKey);
    return status()["executionAttempts"] == 2;
  }));
}

TEST_F(ReconcilerTest, ARestartHandsOnTheFileOfANewerOperator) {
  ASSERT_TRUE(made_first_attempt());
  const std::string maps = kConfigMaps.path("team") + "/faces-config-";
  Json map = get(maps + "1");
  map["data"]["job.yaml"] = "of a newer operator";
  server_.store().update(*fakes::ApiPath::parse(maps + "1"), map);
  Json newer = get(kTrainingJobs.path("team") + "/faces");
  newer["spec"]["training"]["newThing"] = 1;
  newer["metadata"]["generation"] = 2;
  apply_again(newer);
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  ASSERT_TRUE(eventually([&] {
    const auto job = caches_.job({"team", "faces"});
    return caches_.pods(kJobKey).size() == 2 && job && !job->value.unknown.empty();
  }));
  ASSERT_TRUE(eventually([&] {
    reconciler_.reconcile(kJobKey);
    return get(maps + "2").contains("data");
  }));
  EXPECT_EQ(get(maps + "2")["data"]["job.yaml"], "of a newer operator");
}

}  // namespace
}  // namespace outrigger::controller
