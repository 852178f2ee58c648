#include "operator/controller/poller.h"

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
constexpr size_t kLargestPage = size_t{64} << 10;
// Servers are asked on the beats of one clock, several at a time, so that threads wake for a beat
// and not for a server: so many in a period.
constexpr int kBeats = 40;

kube::WorkQueueOptions queue_options(const PollerOptions& options) {
  kube::WorkQueueOptions queue;
  queue.name = "status";
  queue.timer = options.timer;
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

std::optional<std::string> ask_status(const std::string& ip) {
  try {
    http::Client client(pages_of(ip));
    const auto response = client.get(std::string(api::kStatusPath));
    if (response.status == 200) return response.body;
    log::debug("{}: status {}", ip, response.status);
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
  return std::nullopt;
}

void tell_job(const Edit& edit) {
  http::ClientOptions options = pages_of(edit.ip);
  options.headers = {{"Authorization", "Bearer " + edit.token}};
  try {
    http::Client client(std::move(options));
    const int status = client.post(std::string(api::kJobPath), edit.body).status;
    // Its page tells of a refusal.
    if (status != 200 && status != 400)
      log::warning("{}: the edited job was not taken: status {}", edit.ip, status);
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
}

Poller::Poller(PollerOptions options, ControllerMetrics& metrics, Receiver receiver)
    : options_(std::move(options)),
      metrics_(metrics),
      receiver_(std::move(receiver)),
      queue_(queue_options(options_)) {}

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
    servers_[job_key] = ip;
  }
  queue_.add_after(job_key, wait());
}

void Poller::run(const std::stop_token& stop) {
  while (const auto job_key = queue_.take(stop)) {
    try {
      poll(*job_key);
    } catch (const std::exception& error) {
      log::warning("{}: asking for progress: {}", *job_key, error.what());
    }
    if (!ip_of(*job_key).empty()) queue_.add_after(*job_key, wait());
    queue_.done(*job_key);
  }
}

void Poller::poll(const std::string& job_key) {
  const std::string ip = ip_of(job_key);
  if (ip.empty()) return;
  const auto page = options_.ask(ip);
  const auto report = page ? read_report(*page) : std::nullopt;
  metrics_.polled(report.has_value());
  if (!report || ip_of(job_key) != ip) return;
  const auto edit = receiver_(job_key, *report);
  if (edit && edit->ip == ip) options_.tell(*edit);
}

std::string Poller::ip_of(const std::string& job_key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = servers_.find(job_key);
  return found == servers_.end() ? std::string() : found->second;
}

// With jitter, so that a thousand jobs that started together are not asked together.
Duration Poller::wait() const {
  const double factor = 0.8 + 0.4 * kube::random_chance();
  const Duration beat = options_.period / kBeats;
  const Duration now = options_.timer->now().time_since_epoch();
  const Duration due = now + std::chrono::duration_cast<Duration>(options_.period * factor);
  return due - due % beat - now;
}

}  // namespace outrigger::controller
