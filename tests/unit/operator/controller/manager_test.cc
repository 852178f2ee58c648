#include "operator/controller/manager.h"

#include <gmock/gmock.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/tcp.h"
#include "kube/client/base64.h"
#include "kube/object/object.h"
#include "operator/controller/resources.h"
#include "operator/objects/children.h"
#include "tests/unit/operator/controller/manager_scene.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

constexpr const char* kLeasePath =
    "/apis/coordination.k8s.io/v1/namespaces/system/leases/outrigger-operator";

class ManagerTest : public ManagerScene {
 protected:
  /// What it lacks, as long as it does; then it is ready.
  void expect_to_wait_for(Operator& leader, const std::string& what) {
    leader.start();
    EXPECT_TRUE(eventually([&] {
      const http::Response page = leader.readiness();
      return page.status == 503 && page.body == "no list of " + what + " yet\n";
    }));
    server_.release_hanging();
    EXPECT_TRUE(eventually([&] { return leader.readiness().status == 200; }));
  }
};

TEST_F(ManagerTest, AJobThatIsAppliedGetsItsPodsAndAStatus) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  EXPECT_THAT(pods(), ElementsAre("faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"));
  EXPECT_EQ(status()["executionAttempts"], 1);
  EXPECT_EQ(get("/api/v1/namespaces/team/services/faces-server")["spec"]["clusterIP"], "None");
}

TEST_F(ManagerTest, WhoeverIsSlowAtTheStatusPortHoldsUpNoProbe) {
  const Manager& manager = *operator_.manager;
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 64; ++i) {
    const auto address = tcp::resolve("127.0.0.1", static_cast<uint16_t>(manager.status_port()),
                                      tcp::ResolveFor::kConnecting);
    slow.push_back(tcp::open_socket(address.front()));
    ASSERT_EQ(tcp::connect(slow.back().get(), address.front(), system_now() + kPatience), 0);
  }
  const auto begin = system_now();
  EXPECT_EQ(Operator::page_at(manager.health_port(), "/healthz").status, 200);
  EXPECT_EQ(Operator::page_at(manager.health_port(), "/readyz").status, 200) << "to lead";
  EXPECT_LT(system_now() - begin, seconds(4)) << "as long as one is waited for";
}

TEST_F(ManagerTest, AQueuedJobThatNamesNoPriorityHasTheLeastDefaultOne) {
  const auto make_class = [&](const std::string& name, int value, bool is_default) {
    server_.store().create(
        *fakes::ApiPath::parse(kPriorityClasses.path("")),
        {{"metadata", {{"name", name}}}, {"value", value}, {"globalDefault", is_default}});
  };
  make_class("high", 1000, false);
  make_class("usual", 20, true);
  make_class("low", 10, true);
  Json queued = job();
  queued["spec"]["schedulingPolicy"] = {{"queue", "team-a"}};
  apply(queued);
  operator_.start();
  const std::string path = kWorkloads.path("team") + "/trainingjob-faces";
  ASSERT_TRUE(eventually([&] { return get(path).contains("spec"); }));
  EXPECT_EQ(get(path)["spec"]["priorityClassName"], "low");
  EXPECT_EQ(get(path)["spec"]["priority"], 10);
}

TEST_F(ManagerTest, AQueuedJobThatNamesNoPriorityHasNoneWhereClassesMayNotBeRead) {
  server_.fail("GET " + kPriorityClasses.path(""), {.status = 403, .reason = "Forbidden"}, 1000);
  Json queued = job();
  queued["spec"]["schedulingPolicy"] = {{"queue", "team-a"}};
  apply(queued);
  operator_.start();
  const std::string path = kWorkloads.path("team") + "/trainingjob-faces";
  ASSERT_TRUE(eventually([&] { return get(path).contains("spec"); }));
  EXPECT_FALSE(get(path)["spec"].contains("priorityClassName"));
}

TEST_F(ManagerTest, AQueuedJobWaitsWhereThePriorityThatItNamesMayNotBeRead) {
  server_.fail("GET " + kPriorityClasses.path("") + "/high", {.status = 403, .reason = "Forbidden"},
               1000);
  Json queued = job();
  queued["spec"]["schedulingPolicy"] = {{"queue", "team-a"}, {"priorityClassName", "high"}};
  apply(queued);
  operator_.start();
  ASSERT_TRUE(eventually([&] { return condition("Suspended") == "True/Queued"; }));
  EXPECT_THAT(status().dump(), testing::HasSubstr("priority class high"));
  EXPECT_FALSE(get(kWorkloads.path("team") + "/trainingjob-faces").contains("spec"));
}

TEST_F(ManagerTest, AJobThatWasThereBeforeTheOperatorIsFound) {
  apply(job());
  operator_.start();
  EXPECT_TRUE(all_made());
}

TEST_F(ManagerTest, CreatingIsNeverRepeatedThoughEveryAnswerIsLost) {
  server_.fail("POST " + std::string(kPodsPath), {.status = 500, .after = true}, 3);
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  EXPECT_EQ(pods().size(), 3U);
}

TEST_F(ManagerTest, AJobWhosePodsCannotBeMadeHasBegunAllTheSame) {
  // As where its storage is broken.
  server_.fail("POST " + std::string(kPodsPath), {.status = 500}, 1000);
  operator_.start();
  apply(job());
  ASSERT_TRUE(eventually([&] { return condition("Running") == "False/Creating"; }));
  EXPECT_EQ(status()["executionAttempts"], 1);
  EXPECT_TRUE(status().contains("startTime")) << "deadlines count from it";
  EXPECT_THAT(pods(), IsEmpty());
}

TEST_F(ManagerTest, AServerThatWantsALongWaitIsNotAskedBefore) {
  const std::string pods_of_team = "POST " + std::string(kPodsPath);
  server_.fail(pods_of_team, {.status = 429, .retry_after = 40}, 1000);
  operator_.start();
  apply(job());
  ASSERT_TRUE(server_.wait_for_requests(pods_of_team, 1));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // the job's own back-off begins at 5 ms
  // A change of the job may bring it back.
  EXPECT_THAT(server_.requests(pods_of_team), SizeIs(Le(3)));
}

TEST_F(ManagerTest, ALeaderIsNotReadyWithoutWhatItMustKnowAndSaysWhatThatIs) {
  server_.fail("GET " + kPods.path(""), {.hang = true});
  Operator late(server_.config(), false, "late", Duration::zero());
  EXPECT_EQ(late.readiness().status, 200) << "it does not lead";
  expect_to_wait_for(late, "pods in all namespaces");
}

TEST_F(ManagerTest, OfSeveralNamespacesALeaderMustKnowOne) {
  for (const char* ns : {"other", "team"})
    server_.fail("GET " + kServices.path(ns), {.hang = true});
  Operator late(server_.config(), false, "late", Duration::zero(), {"other", "team"});
  expect_to_wait_for(late, "services in the namespaces other, team");
}

TEST_F(ManagerTest, ANamespaceThatCannotBeListedHoldsUpNoOther) {
  server_.fail("GET " + kServices.path("other"), {.hang = true});
  Operator half(server_.config(), false, "half", Duration::zero(), {"other", "team"});
  half.start();
  apply(job());
  EXPECT_TRUE(all_made());
  EXPECT_TRUE(eventually([&] { return half.readiness().status == 200; }));
  EXPECT_TRUE(eventually([&] {
    return half.manager->metrics().exposition().find("\noutrigger_unlisted_namespaces 1\n") !=
           std::string::npos;
  }));
  server_.release_hanging();
}

TEST_F(ManagerTest, ALeaderThatCanListNothingTellsOfItAndIsNotReady) {
  for (const std::vector<std::string>& namespaces : {std::vector<std::string>{"team"}, {}}) {
    const std::string ns = namespaces.empty() ? "" : namespaces.front();
    server_.fail("GET " + kServices.path(ns), {.status = 403, .reason = "Forbidden"}, 1000);
    Operator none(server_.config(), false, "none", Duration::zero(), namespaces);
    none.start();
    const Json shown = Json::array({ns.empty() ? "*" : ns});
    EXPECT_TRUE(eventually([&] { return none.unlisted() == shown; })) << shown;
    EXPECT_THAT(none.manager->metrics().exposition(),
                testing::HasSubstr("\noutrigger_unlisted_namespaces 1\n"));
    EXPECT_EQ(none.readiness().status, 503);
  }
}

TEST_F(ManagerTest, ALeaderIsReadyWhileItsCachesFill) {
  server_.fail("GET " + kPods.path(""), {.hang = true});
  operator_.start();
  ASSERT_TRUE(server_.wait_for_requests("GET " + kPods.path(""), 1));
  EXPECT_EQ(operator_.readiness().status, 200);
  server_.release_hanging();
}

TEST_F(ManagerTest, AConflictInTheStatusIsWorkedOut) {
  server_.fail("/faces/status", {.status = 409, .reason = "Conflict"}, 3);
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  EXPECT_EQ(status()["executionAttempts"], 1);
}

TEST_F(ManagerTest, EveryWriteOfTheStatusNamesTheVersionItIsBasedOn) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  const auto writes = server_.requests("/faces/status");
  ASSERT_FALSE(writes.empty());
  for (const auto& write : writes)
    EXPECT_NE(Json::parse(write.body)["metadata"].value("resourceVersion", ""), "");
}

TEST_F(ManagerTest, OfPodsThatComeOneByOneTheStatusTellsTogether) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  const size_t before = server_.requests("/faces/status").size();
  run_pod("faces-worker-0-0");
  run_pod("faces-worker-1-0");
  run_pod("faces-server-0-0");
  ASSERT_TRUE(eventually([&] { return condition("PodsReady") == "True/Ready"; }));
  EXPECT_EQ(condition("Running"), "True/ServersReady");
  // Once that it runs, and once the numbers, if they came apart.
  EXPECT_LE(server_.requests("/faces/status").size(), before + 2);
}

TEST_F(ManagerTest, NoSecretIsEverRead) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  EXPECT_THAT(server_.requests("GET /api/v1/namespaces/team/secrets"), IsEmpty());
  EXPECT_THAT(server_.requests("GET /api/v1/secrets"), IsEmpty());
}

TEST_F(ManagerTest, NothingOfAnAttemptIsMadeTwice) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  for (const char* pod : {"faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"}) run_pod(pod);
  ASSERT_TRUE(eventually([&] { return condition("PodsReady") == "True/Ready"; }));
  const std::string in_team = "POST /api/v1/namespaces/team/";
  EXPECT_THAT(server_.requests(in_team + "secrets"), SizeIs(1));
  EXPECT_THAT(server_.requests(in_team + "services"), SizeIs(1));
  EXPECT_THAT(server_.requests(in_team + "configmaps"), SizeIs(1));
  EXPECT_THAT(server_.requests(in_team + "pods"), SizeIs(3));
}

TEST_F(ManagerTest, SomebodyElsesPodOfOurNameFailsTheJobAndIsLeftAlone) {
  server_.store().create(*fakes::ApiPath::parse(kPodsPath),
                         {{"metadata", {{"name", "faces-server-0-0"}, {"namespace", "team"}}}});
  operator_.start();
  apply(job());
  ASSERT_TRUE(eventually([&] { return condition("Failed") == "True/NameCollision"; }));
  EXPECT_THAT(pods(), ElementsAre("faces-server-0-0"));
}

TEST_F(ManagerTest, AChildThatSomebodyDeletesComesBack) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  const std::string path = "/api/v1/namespaces/team/services/faces-server";
  const std::string before = get(path)["metadata"]["uid"];
  server_.store().remove(*fakes::ApiPath::parse(path), Json::object());
  EXPECT_TRUE(eventually([&] {
    const Json now = get(path);
    return now.contains("spec") && now["metadata"]["uid"] != before;
  }));
}

TEST_F(ManagerTest, AChildThatIsRefusedIsShownAndNotAskedForWithoutAnEnd) {
  const std::string services = "POST /api/v1/namespaces/team/services";
  server_.fail(services, {.status = 403, .reason = "Forbidden"}, 1000);
  operator_.start();
  apply(job());
  ASSERT_TRUE(eventually([&] { return condition("PodsScheduled") == "False/Forbidden"; }));
  std::this_thread::sleep_for(std::chrono::seconds(2));  // more passes would have asked by then
  EXPECT_THAT(server_.requests(services), SizeIs(1));
  EXPECT_THAT(pods(), IsEmpty());
}

TEST_F(ManagerTest, AFormerJobsServiceThatGoesMakesRoomAtOnce) {
  const std::string services = "/api/v1/namespaces/team/services";
  server_.store().create(*fakes::ApiPath::parse(services), build_service(world_.job, 1));
  operator_.start();
  apply(job());
  ASSERT_TRUE(eventually([&] { return condition("PodsScheduled") == "False/FormerPodsRemain"; }));
  const auto begin = std::chrono::steady_clock::now();
  server_.store().remove(*fakes::ApiPath::parse(services + "/faces-server"), Json::object());
  ASSERT_TRUE(all_made());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10)) << "15 s after the refusal";
}

// As where a policy forbids it by now.
TEST_F(ManagerTest, ASecretThatMayNotBeMadeForTheNextAttemptIsToldOf) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  for (const std::string& pod : pods()) run_pod(pod);
  ASSERT_TRUE(eventually([&] { return condition("Running") == "True/ServersReady"; }));
  const std::string secrets = "POST /api/v1/namespaces/team/secrets";
  server_.fail(secrets, {.status = 403, .reason = "Forbidden"}, 1000);
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  ASSERT_TRUE(eventually([&] { return condition("PodsScheduled") == "False/Forbidden"; }));
  EXPECT_EQ(status()["executionAttempts"], 2);
}

TEST_F(ManagerTest, AServerThatVanishesIsRestartedOnce) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  for (const std::string& pod : pods()) run_pod(pod);
  ASSERT_TRUE(eventually([&] { return condition("Running") == "True/ServersReady"; }));
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-server-0-0"),
                         Json::object());
  ASSERT_TRUE(eventually([&] { return status()["executionAttempts"] == 2 && pods().size() == 3; }));
  EXPECT_EQ(status().value("restarts", 0), 0);
}

TEST_F(ManagerTest, ProgressThatAServerTellsIsInTheStatus) {
  operator_.page = R"({"progress": {"step": 7, "percent": 3}})";
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  run_pod("faces-server-0-0");
  EXPECT_TRUE(eventually([&] {
    const Json now = status();
    return now.contains("progress") && now["progress"].value("step", 0) == 7;
  }));
  operator_.stop();
  EXPECT_EQ(operator_.asked, "10.0.0.1");
}

TEST_F(ManagerTest, ItGoesOnWhenTheApiServerWasAway) {
  operator_.start();
  ASSERT_TRUE(server_.wait_for_watches(6));
  server_.stop();
  server_.start();
  apply(job());
  EXPECT_TRUE(all_made());
}

TEST_F(ManagerTest, AJobThatIsDeletedIsForgotten) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  server_.store().remove(*fakes::ApiPath::parse(kTrainingJobs.path("team") + "/faces"),
                         Json::object());
  Json again = job();
  again["spec"]["workers"]["replicas"] = 0;
  again["metadata"]["name"] = "later";
  apply(again);
  EXPECT_TRUE(eventually([&] { return pods().size() == 4; }));
}

TEST_F(ManagerTest, ItsMetricsBearTheNamesThatDashboardsKnow) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  ASSERT_TRUE(eventually([&] {
    return operator_.manager->metrics().exposition().find("outrigger_jobs{state=\"Starting\"} 1") !=
           std::string::npos;
  }));
  const std::string page = operator_.manager->metrics().exposition();
  for (const char* name :
       {"controller_runtime_reconcile_total{controller=\"trainingjob\"", "workqueue_adds_total",
        "workqueue_depth", "workqueue_unfinished_work_seconds{name=\"trainingjob\"}",
        "workqueue_longest_running_processor_seconds{name=\"status\"}",
        "rest_client_requests_total", "outrigger_status_polls_total"})
    EXPECT_NE(page.find(name), std::string::npos) << name;
}

TEST_F(ManagerTest, TheLeaseGoesWithTheAccountOfThePodWhereBothAreInOneNamespace) {
  const auto owners_where_account_is_in = [&](const std::string& ns) {
    const Json claims{
        {"kubernetes.io",
         {{"namespace", ns}, {"serviceaccount", {{"name", "operator"}, {"uid", "1b2c"}}}}}};
    std::string payload = kube::encode_base64(claims.dump());
    payload.erase(payload.find_last_not_of('=') + 1);
    kube::Config pod = server_.config();
    pod.token.text = "header." + payload + ".signature";
    Operator one(pod, true);
    one.start();
    EXPECT_TRUE(eventually([&] { return get(kLeasePath).contains("spec"); }));
    one.stop();
    const Json owners = get(kLeasePath)["metadata"].value("ownerReferences", Json());
    server_.store().remove(*fakes::ApiPath::parse(kLeasePath), Json::object());
    return owners;
  };
  const Json owner{
      {"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"name", "operator"}, {"uid", "1b2c"}};
  EXPECT_EQ(owners_where_account_is_in("system"), Json::array({owner}));
  EXPECT_EQ(owners_where_account_is_in("elsewhere"), Json());
}

TEST_F(ManagerTest, AnOperatorWhoseWorkDoesNotEndWithItsLeaseGivesUp) {
  std::latch free(1);
  Operator one(server_.config(), true, "one");
  one.busy = &free;
  one.start();
  apply(job());
  ASSERT_TRUE(all_made());
  run_pod("faces-server-0-0");
  ASSERT_TRUE(eventually([&] { return one.polls > 0; }));
  const auto lease = *fakes::ApiPath::parse(kLeasePath);
  Json taken = server_.store().get(lease).body;
  taken["spec"]["holderIdentity"] = "another";
  taken["metadata"].erase("resourceVersion");
  server_.store().update(lease, taken);
  EXPECT_TRUE(eventually([&] { return one.gave_up.load(); }));
  free.count_down();
  EXPECT_EQ(one.stop(), Manager::End::kLostLease);
}

TEST_F(ManagerTest, OfTwoOperatorsOneWorksAndTheOtherTakesOverWhenItIsToldToStop) {
  Operator first(server_.config(), true, "first");
  Operator second(server_.config(), true, "second");
  first.start();
  const auto holder = [&] {
    return get(kLeasePath).value("/spec/holderIdentity"_json_pointer, std::string());
  };
  ASSERT_TRUE(eventually([&] { return holder() == "first"; }));
  second.start();
  apply(job());
  ASSERT_TRUE(all_made());
  EXPECT_EQ(first.stop(), Manager::End::kStopped);
  EXPECT_TRUE(eventually([&] { return holder() == "second"; }));
  server_.store().remove(*fakes::ApiPath::parse(std::string(kPodsPath) + "/faces-worker-0-0"),
                         Json::object());
  EXPECT_TRUE(eventually([&] { return pods().size() == 3; }));
}

}  // namespace
}  // namespace outrigger::controller
