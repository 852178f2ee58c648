#include "operator/controller/manager.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "api/exit_codes.h"
#include "common/log.h"
#include "http/server.h"
#include "kube/client/service_account.h"
#include "kube/control/leader_election.h"
#include "operator/controller/metrics.h"
#include "operator/controller/resources.h"
#include "operator/controller/shift.h"
#include "operator/names.h"
#include "telemetry/status_server.h"

namespace outrigger::controller {
namespace {

// Nobody deletes the Lease but Kubernetes: with the account that the chart made for our pods.
std::vector<kube::OwnerReference> lease_owners(const ManagerOptions& options) {
  const auto account = kube::service_account_of(options.api_server);
  if (!account || account->ns != options.lease_ns) return {};
  return {{"v1", "ServiceAccount", account->name, account->uid}};
}

// By the lists that came: of what a Caches waits for.
std::vector<std::string> unknown_resources(ControllerMetrics& metrics,
                                           const std::vector<std::string>& namespaces) {
  std::string where;
  for (const std::string& ns : namespaces) where += (where.empty() ? "" : ", ") + ns;
  where = namespaces.empty() ? "all namespaces" : "the namespaces " + where;
  std::vector<std::string> reasons;
  for (const kube::Resource* resource :
       {&kTrainingJobs, &kPods, &kServices, &kConfigMaps, &kNetworkPolicies}) {
    if (metrics.lists(resource->plural) == 0)
      reasons.push_back("no list of " + resource->plural + " in " + where + " yet");
  }
  if (reasons.empty()) reasons.emplace_back("not all of a namespace is listed yet in " + where);
  return reasons;
}

}  // namespace

void end_process() { std::_Exit(static_cast<int>(api::ExitCode::kPeerLost)); }

struct Manager::Impl {
  explicit Impl(ManagerOptions given) : options(std::move(given)), observer(metrics) {
    observer.set_workers(options.workers);
    telemetry::StatusSource source;
    source.not_ready = [this] { return not_ready(); };
    source.status_json = [this] {
      const std::scoped_lock lock(mutex);
      return nlohmann::json{
          {"leader", leading.load()}, {"identity", options.identity}, {"unlisted", unlisted}}
          .dump();
    };
    telemetry::StatusServerOptions pages;
    pages.http.address = options.listen;
    pages.http.port = options.status_port;
    pages.http.threads = 4;
    server = std::make_unique<telemetry::StatusServer>(pages, metrics, source);
    if (options.health_port) show_health(*options.health_port);
  }

  void show_health(int port) {
    health = std::make_unique<http::Server>(
        http::ServerOptions{.address = options.listen, .port = port, .threads = 2});
    health->route("GET", "/healthz", [](const http::Request&) { return http::Response{}; });
    health->route("GET", "/readyz", [this](const http::Request&) {
      const auto reasons = not_ready();
      return http::Response{reasons.empty() ? 200 : 503, reasons.empty() ? "" : reasons.front()};
    });
    health->start();
  }

  // One that does not lead is ready to.
  std::vector<std::string> not_ready() {
    if (failed) return {"the lease is lost"};
    if (!leading || working || system_now() - led_since.load() < options.longest_fill) return {};
    return unknown_resources(observer, options.namespaces);
  }

  // A worker that does not end, in a request, say, must not work beside another leader.
  void lose() {
    failed = true;
    giving_up = std::jthread([this](const std::stop_token& ended) {
      if (!kube::Timer::system().sleep(options.longest_end, ended)) return;
      log::error("the lease is lost, and the work on it does not end");
      options.give_up();
    });
  }

  void lead(const std::stop_token& stop) {
    led_since = system_now();
    leading = true;
    try {
      Shift shift(options, observer, stop);
      shift.run(stop, [this](Shift::Reach reach) {
        observer.set_unlisted(reach.unlisted.size());
        std::ranges::replace(reach.unlisted, std::string(), std::string("*"));
        const std::scoped_lock lock(mutex);
        unlisted = std::move(reach.unlisted);
        working = reach.working;
      });
    } catch (const std::exception& error) {
      log::error("{}", error.what());
      failed = true;
      ending.request_stop();
    }
    observer.set_unlisted(0);
    leading = false;
  }

  ManagerOptions options;
  std::jthread giving_up;  // until all else has ended
  telemetry::Metrics metrics;
  ControllerMetrics observer;
  std::atomic<bool> leading{false};
  std::atomic<TimePoint> led_since{TimePoint{}};
  std::atomic<bool> working{false};  // on a namespace at least
  std::mutex mutex;
  std::vector<std::string> unlisted;  // under it; "*" is all
  std::atomic<bool> failed{false};
  std::stop_source ending;
  std::unique_ptr<telemetry::StatusServer> server;
  std::unique_ptr<http::Server> health;
};

Manager::Manager(ManagerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Manager::~Manager() = default;
int Manager::status_port() const { return impl_->server->port(); }
int Manager::health_port() const { return impl_->health->port(); }
telemetry::Metrics& Manager::metrics() { return impl_->metrics; }

Manager::End Manager::run(const std::stop_token& stop) {
  const ManagerOptions& options = impl_->options;
  const std::stop_callback end(stop, [this] { impl_->ending.request_stop(); });
  const std::stop_token ended = impl_->ending.get_token();
  if (!options.elect_leader) {
    impl_->lead(ended);
    return impl_->failed ? End::kLostLease : End::kStopped;
  }
  kube::LeaderElectionOptions election;
  election.lease = {options.lease_ns, options.lease_name};
  election.identity = options.identity;
  election.owners = [&options] { return lease_owners(options); };
  election.user_agent = std::string(kComponent);
  election.observer = &impl_->observer;
  kube::LeaderElection leader(options.api_server, election);
  const auto outcome = leader.run(
      ended, {.lead = [this](const std::stop_token& lease) { impl_->lead(lease); },
              .lost = [this] { impl_->lose(); },
              .observed = [](const std::string& identity) { log::info("{} leads", identity); }});
  return outcome == kube::LeaderElection::Outcome::kLost || impl_->failed ? End::kLostLease
                                                                          : End::kStopped;
}

}  // namespace outrigger::controller
