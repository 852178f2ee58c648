#include "operator/controller/manager.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "api/names.h"
#include "api/write.h"
#include "kube/object/object.h"
#include "operator/controller/resources.h"
#include "tests/fakes/api_server.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr seconds kPatience{20};
constexpr const char* kPodsPath = "/api/v1/namespaces/team/pods";

/// One operator over a fake API server.
class Operator {
 public:
  explicit Operator(const kube::Config& server, bool elect = false,
                    const std::string& identity = "one") {
    ManagerOptions options;
    options.api_server = server;
    options.listen = "127.0.0.1";
    options.status_port = 0;
    options.elect_leader = elect;
    options.lease_ns = "system";
    options.identity = identity;
    options.jobs.server_image = "server:1";
    options.jobs.worker_image = "worker:1";
    options.jobs.token_key = "key";
    options.poll_period = milliseconds(20);
    options.ask = [this](const std::string& ip) -> std::optional<std::string> {
      asked = ip;
      return page.empty() ? std::nullopt : std::optional(page);
    };
    page = "";
    manager.emplace(std::move(options));
  }
  ~Operator() { stop(); }
  void start() {
    thread = std::jthread([this](const std::stop_token& stop) { end = manager->run(stop); });
  }
  Manager::End stop() {
    if (thread.joinable()) {
      thread.request_stop();
      thread.join();
    }
    return end;
  }

  std::optional<Manager> manager;
  std::string page;   // set before start()
  std::string asked;  // read after stop()
  Manager::End end = Manager::End::kStopped;
  std::jthread thread;
};

class ManagerTest : public testing::Test {
 protected:
  ManagerTest() : world_("  workers: {replicas: 2}\n"), operator_(server_.config()) {}
  ~ManagerTest() override { operator_.stop(); }

  Json job() const {
    Json object = Json::parse(api::to_json(world_.job).dump());
    object.erase("status");
    object["metadata"] = {{"name", "faces"}, {"namespace", "team"}, {"generation", 1}};
    return object;
  }
  void apply(const Json& object) {
    server_.store().create(*fakes::ApiPath::parse(kTrainingJobs.path("team")), object);
  }
  Json get(const std::string& path) {
    return server_.store().get(*fakes::ApiPath::parse(path)).body;
  }
  Json status() { return get(kTrainingJobs.path("team") + "/faces").value("status", Json()); }
  std::string condition(const std::string& type) {
    const Json now = status();
    if (!now.is_object() || !now.contains("conditions")) return "";
    for (const Json& one : now["conditions"]) {
      if (one["type"] == type)
        return one["status"].get<std::string>() + "/" + one["reason"].get<std::string>();
    }
    return "";
  }
  std::vector<std::string> pods() {
    std::vector<std::string> names;
    const Json list =
        server_.store().list(*fakes::ApiPath::parse(kPodsPath), {.ns = "team"}, 0, "").body;
    for (const Json& pod : list["items"]) names.push_back(kube::name_of(pod));
    return names;
  }
  void run_pod(const std::string& name) {
    const Json object = get(std::string(kPodsPath) + "/" + name);
    World ground;
    ground.pods[name] = object;
    ground.run(name);
    server_.store().update(*fakes::ApiPath::parse(std::string(kPodsPath) + "/" + name),
                           ground.pods[name]);
  }
  static bool eventually(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return true;
  }
  bool all_made() {
    return eventually(
        [&] { return pods().size() == 3 && condition("Running") == "False/Starting"; });
  }

  fakes::ApiServer server_;
  World world_;
  Operator operator_;
};

TEST_F(ManagerTest, AJobThatIsAppliedGetsItsPodsAndAStatus) {
  operator_.start();
  apply(job());
  ASSERT_TRUE(all_made());
  EXPECT_THAT(pods(), ElementsAre("faces-server-0-0", "faces-worker-0-0", "faces-worker-1-0"));
  EXPECT_EQ(status()["executionAttempts"], 1);
  EXPECT_EQ(get("/api/v1/namespaces/team/services/faces-server")["spec"]["clusterIP"], "None");
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
  // As where the webhook of somebody else's admission is broken.
  server_.fail("POST " + std::string(kPodsPath), {.status = 500}, 1000);
  operator_.start();
  apply(job());
  ASSERT_TRUE(eventually([&] { return condition("Running") == "False/Creating"; }));
  EXPECT_EQ(status()["executionAttempts"], 1);
  EXPECT_TRUE(status().contains("startTime")) << "deadlines count from it";
  EXPECT_THAT(pods(), IsEmpty());
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
        "workqueue_depth", "rest_client_requests_total", "outrigger_status_polls_total"})
    EXPECT_NE(page.find(name), std::string::npos) << name;
}

TEST_F(ManagerTest, OfTwoOperatorsOneWorksAndTheOtherTakesOverWhenItIsToldToStop) {
  Operator first(server_.config(), true, "first");
  Operator second(server_.config(), true, "second");
  first.start();
  const std::string lease =
      "/apis/coordination.k8s.io/v1/namespaces/system/leases/outrigger-operator";
  const auto holder = [&] {
    return get(lease).value("/spec/holderIdentity"_json_pointer, std::string());
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
