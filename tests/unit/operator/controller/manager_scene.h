#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/write.h"
#include "http/client.h"
#include "kube/object/object.h"
#include "operator/controller/manager.h"
#include "operator/controller/resources.h"
#include "tests/fakes/api_server.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {

/// One operator over a fake API server.
class Operator {
 public:
  explicit Operator(const kube::Config& server, bool elect = false,
                    const std::string& identity = "one",
                    Duration longest_fill = ManagerOptions().longest_fill,
                    const std::vector<std::string>& namespaces = {}) {
    ManagerOptions options;
    options.api_server = server;
    options.listen = "127.0.0.1";
    options.status_port = 0;
    options.health_port = 0;
    options.elect_leader = elect;
    options.lease_ns = "system";
    options.identity = identity;
    options.jobs.server_image = "server:1";
    options.jobs.worker_image = "worker:1";
    options.jobs.token_key = "key";
    options.poll_period = std::chrono::milliseconds(20);
    options.longest_fill = longest_fill;
    options.namespaces = namespaces;
    options.ask = [this](const std::string& ip,
                         const std::stop_token&) -> std::optional<std::string> {
      asked = ip;
      ++polls;
      if (busy != nullptr) busy->wait();
      return page.empty() ? std::nullopt : std::optional(shown());
    };
    options.tell = [this](const Edit& edit, const std::stop_token&) {
      const std::scoped_lock lock(mutex);
      told.push_back(edit);
      if (!knows_token) return false;
      if (!hears_edits) return true;
      known = Json::parse(edit.body)["generation"];
      refused = why;
      return true;
    };
    options.longest_end = std::chrono::milliseconds(50);
    options.give_up = [this] { gave_up = true; };
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

  /// What /readyz says.
  http::Response readiness() const { return page_at(manager->status_port(), "/readyz"); }
  /// What /status names as not listed.
  Json unlisted() const {
    return Json::parse(page_at(manager->status_port(), "/status").body).at("unlisted");
  }
  /// What a page says at one of its ports.
  static http::Response page_at(int port, const std::string& path) {
    return http::Client({.base_url = "http://127.0.0.1:" + std::to_string(port)}).get(path);
  }
  /// The page, with what its server knows of the job.
  std::string shown() {
    const std::scoped_lock lock(mutex);
    Json now = Json::parse(page);
    if (known) now["edits"] = {{"generation", *known}, {"refused", refused}};
    return now.dump();
  }
  /// Why the server refuses what it is told from now on.
  void refuse(const std::string& text) {
    const std::scoped_lock lock(mutex);
    why = text;
  }
  /// What the server was told so far.
  std::vector<Edit> edits() {
    const std::scoped_lock lock(mutex);
    return told;
  }

  std::optional<Manager> manager;
  std::string page;   // set before start()
  std::string asked;  // read after stop()
  std::atomic<int> polls = 0;
  std::latch* busy = nullptr;  // who asks a server waits for it, whatever else; set before start()
  std::atomic<bool> gave_up = false;
  bool knows_token = true;       // set before start()
  bool hears_edits = true;       // set before start()
  std::optional<int64_t> known;  // the generation that the server begins with; set before start()
  std::string refused;           // why that is not taken
  std::string why;               // the next one is not
  std::vector<Edit> told;
  std::mutex mutex;
  Manager::End end = Manager::End::kStopped;
  std::jthread thread;
};

/// A job of one server and two workers, an operator that is not started yet, and what both stand
/// on.
class ManagerScene : public testing::Test {
 protected:
  static constexpr const char* kPodsPath = "/api/v1/namespaces/team/pods";
  static constexpr seconds kPatience{20};

  ManagerScene() : world_("  workers: {replicas: 2}\n"), operator_(server_.config()) {}
  ~ManagerScene() override { operator_.stop(); }

  Json job() const {
    Json object = Json::parse(api::to_json(world_.job).dump());
    object.erase("status");
    object["metadata"] = {{"name", "faces"}, {"namespace", "team"}, {"generation", 1}};
    return object;
  }
  void apply(const Json& object) {
    server_.store().create(*fakes::ApiPath::parse(kTrainingJobs.path("team")), object);
  }
  void apply_again(const Json& object) {
    server_.store().update(*fakes::ApiPath::parse(kTrainingJobs.path("team") + "/faces"), object);
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
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
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

}  // namespace outrigger::controller
