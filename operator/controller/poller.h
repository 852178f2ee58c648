#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kube/control/work_queue.h"
#include "operator/controller/metrics.h"
#include "operator/observed.h"
#include "operator/policy/edits.h"

namespace outrigger::controller {

struct PollerOptions {
  Duration period = std::chrono::seconds(10);
  int threads = 4;
  /// The body of the status page at an address, or nothing where nobody answers well. May take as
  /// long as it needs; several threads ask at once.
  std::function<std::optional<std::string>(const std::string& ip)> ask;
  /// Tells a server of its job as it was edited. Its next page shows whether it took it.
  std::function<void(const Edit& edit)> tell;
  const kube::Timer* timer = &kube::Timer::system();
};

/// Asks a server's /status over HTTP: two seconds at most, 64 KiB at most.
std::optional<std::string> ask_status(const std::string& ip);
/// Tells a server by its POST /job: two seconds at most.
void tell_job(const Edit& edit);

/// Asks the first server of each job how far it is, about every ten seconds. A server that does not
/// answer is asked again next time and nothing more: that it is busy says nothing. One whose page
/// shows that it knows an older job is told of the present one. Thread-safe.
class Poller {
 public:
  using Receiver =
      std::function<std::optional<Edit>(const std::string& job_key, const ServerReport& report)>;
  /// `metrics` must outlive this; `receiver` is called from the poller's threads and returns what
  /// that server is to be told.
  Poller(PollerOptions options, ControllerMetrics& metrics, Receiver receiver);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void start();
  void stop();
  /// Where the job's server is from now on; empty: nobody to ask.
  void watch(const std::string& job_key, const std::string& ip);

 private:
  void run(const std::stop_token& stop);
  void poll(const std::string& job_key);
  std::string ip_of(const std::string& job_key) const;
  Duration wait() const;

  const PollerOptions options_;
  ControllerMetrics& metrics_;
  const Receiver receiver_;
  kube::WorkQueue queue_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> servers_;  // job key to address
  std::vector<std::jthread> threads_;
};

}  // namespace outrigger::controller
