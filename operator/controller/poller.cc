#include "operator/controller/poller.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "api/names.h"
#include "common/error.h"
#include "common/log.h"
#include "http/client.h"
#include "kube/client/retry.h"
#include "operator/read_report.h"

namespace outrigger::controller {
namespace {

constexpr std::chrono::seconds kPatience{2};
// An answer or a refusal within this has cost no thread its time.
constexpr std::chrono::milliseconds kAtOnce{500};
constexpr size_t kLargestPage = size_t{64} << 10;
// Servers are asked on the beats of one clock, several at a time, so that threads wake for a beat
// and not for a server: so many in a period.
constexpr int kBeats = 40;
// Of a wait, so that a thousand jobs that started together are not asked together.
constexpr double kLeastJitter = 0.8;
constexpr double kMostJitter = 1.2;

kube::WorkQueueOptions queue_options(const PollerOptions& options, ControllerMetrics& metrics) {
  kube::WorkQueueOptions queue;
  queue.name = "status";
  // Who did not answer is of low priority. A turn of its own, however long it has waited, would
  // cost those that answer seconds; questions that are answered take milliseconds, and leave time.
  queue.patience = Duration::max();
  queue.timer = options.timer;
  queue.observer = &metrics;
  return queue;
}

http::ClientOptions pages_of(const std::string& ip) {
  const std::string host = ip.find(':') == ip.npos ? ip : "[" + ip + "]";
  return {.base_url = "http://" + host + ":" + std::to_string(api::kStatusPort),
          .timeout = kPatience,
          .connect_timeout = kPatience,
          .max_body = kLargestPage};
}

}  // namespace

std::optional<std::string> ask_status(const std::string& ip, const std::stop_token& stop) {
  try {
    http::Client client(pages_of(ip));
    const auto response = client.send({"GET", std::string(api::kStatusPath)}, stop);
    if (response.status == 200) return response.body;
    log::debug("{}: status {}", ip, response.status);
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
  return std::nullopt;
}

bool tell_job(const Edit& edit, const std::stop_token& stop) {
  http::ClientOptions options = pages_of(edit.ip);
  options.headers = {{"Authorization", "Bearer " + edit.token},
                     {"Content-Type", "application/json"}};
  try {
    http::Client client(std::move(options));
    const http::ClientRequest request{"POST", std::string(api::kJobPath), {}, edit.body};
    const int status = client.send(request, stop).status;
    // Its page tells of a refusal; of an unknown token the caller does.
    if (status != 200 && status != 400 && status != 401)
      log::warning("{}: the edited job was not taken: status {}", edit.ip, status);
    return status != 401;
  } catch (const Error& error) {
    log::debug("{}", error.what());
    return true;
  }
}

Poller::Poller(PollerOptions options, ControllerMetrics& metrics, Receiver receiver)
    : options_(std::move(options)),
      metrics_(metrics),
      receiver_(std::move(receiver)),
      queue_(queue_options(options_, metrics)) {}

Poller::~Poller() { stop(); }

void Poller::start() {
  for (int i = 0; i < options_.threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
}

void Poller::stop() {
  queue_.shut_down();
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();
}

void Poller::watch(const std::string& job_key, const std::string& ip) {
  {
    const std::scoped_lock lock(mutex_);
    if (ip.empty()) {
      servers_.erase(job_key);
      return;
    }
    Server& server = servers_[job_key];
    // Each look at a job says so again, which must not cut a silent server's wait short.
    if (server.ip == ip) return;
    server = {.ip = ip};
  }
  queue_.add_after(job_key, wait(0));
}

void Poller::run(const std::stop_token& stop) {
  while (const auto job_key = queue_.take(stop)) {
    try {
      poll(*job_key, stop);
    } catch (const std::exception& error) {
      log::warning("{}: asking for progress: {}", *job_key, error.what());
    }
    ask_again(*job_key);
    queue_.done(*job_key);
  }
}

void Poller::poll(const std::string& job_key, const std::stop_token& stop) {
  const auto server = server_of(job_key);
  if (!server) return;
  const std::string& ip = server->ip;
  const TimePoint asked = options_.timer->now();
  const auto page = options_.ask(ip, stop);
  if (stop.stop_requested()) return;
  // One that refuses at once, as while it starts, costs nothing.
  note(job_key, ip, !page && options_.timer->now() - asked > kAtOnce);
  const auto report = page ? read_report(*page) : std::nullopt;
  metrics_.polled(report.has_value());
  if (!report || !is_at(job_key, ip)) return;
  const auto edit = receiver_(job_key, *report);
  if (edit && edit->ip == ip) options_.tell(job_key, *edit, stop);
}

std::optional<Poller::Server> Poller::server_of(const std::string& job_key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = servers_.find(job_key);
  return found == servers_.end() ? std::nullopt : std::optional(found->second);
}

bool Poller::is_at(const std::string& job_key, const std::string& ip) const {
  const auto server = server_of(job_key);
  return server && server->ip == ip;
}

void Poller::note(const std::string& job_key, const std::string& ip, bool silent) {
  const std::scoped_lock lock(mutex_);
  const auto found = servers_.find(job_key);
  if (found == servers_.end() || found->second.ip != ip) return;
  int& silences = found->second.silences;
  silences = silent ? silences + 1 : 0;
}

void Poller::ask_again(const std::string& job_key) {
  const auto server = server_of(job_key);
  if (!server) return;
  const auto priority = server->silences == 0 ? kube::Priority::kNormal : kube::Priority::kLow;
  queue_.add_after(job_key, wait(server->silences), priority);
}

Duration Poller::wait(int silences) const {
  const auto scaled = [](Duration time, double by) {
    return std::chrono::duration_cast<Duration>(time * by);
  };
  // With jitter it is not longer than the longest.
  const Duration most = std::max(options_.period, scaled(options_.longest_wait, 1 / kMostJitter));
  const Duration mean = kube::BackOff{options_.period, most}.after(std::max(silences, 1), 0);
  const double jitter = std::lerp(kLeastJitter, kMostJitter, kube::random_chance());
  const Duration beat = options_.period / kBeats;
  const Duration now = options_.timer->now().time_since_epoch();
  const Duration due = now + scaled(mean, jitter);
  return due - due % beat - now;
}

}  // namespace outrigger::controller
