#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
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
  /// A server that does not answer is asked again after a period, then two, four, …, up to this.
  Duration longest_wait = std::chrono::seconds(60);
  int threads = 4;
  /// The body of the status page at an address, or nothing where nobody answers well. May take as
  /// long as it needs, but ends at once when `stop` is requested; several threads ask at once.
  std::function<std::optional<std::string>(const std::string& ip, const std::stop_token& stop)> ask;
  /// Tells a server of its job as it was edited. Its next page shows whether it took it. Ends at
  /// once when `stop` is requested.
  std::function<void(const std::string& job_key, const Edit& edit, const std::stop_token& stop)>
      tell;
  const kube::Timer* timer = &kube::Timer::system();
};

/// Asks a server's /status over HTTP: two seconds at most to connect and for its answer, 64 KiB at
/// most.
std::optional<std::string> ask_status(const std::string& ip, const std::stop_token& stop);
/// Tells a server by its POST /job, with the same limits. False: it does not know the token.
bool tell_job(const Edit& edit, const std::stop_token& stop);

/// Asks the first server of each job how far it is, about every ten seconds. That a server does not
/// answer says nothing of its job; but it has cost a thread seconds, so until it answers or refuses
/// at once, or is at another address, it is asked more seldom and behind all that answer. One whose
/// page shows that it knows an older job is told of the present one. Thread-safe.
class Poller {
 public:
  using Receiver =
      std::function<std::optional<Edit>(const std::string& job_key, const ServerReport& report)>;
  /// `metrics` must outlive this and observes the queue; `receiver` is called from the poller's
  /// threads and returns what that server is to be told.
  Poller(PollerOptions options, ControllerMetrics& metrics, Receiver receiver);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void start();
  /// Ends the questions that are under way, too.
  void stop();
  /// Where the job's server is from now on; empty: nobody to ask.
  void watch(const std::string& job_key, const std::string& ip);
  /// As WorkQueue::tell_of_work().
  void tell_of_work() const { queue_.tell_of_work(); }

 private:
  struct Server {
    std::string ip;
    int silences = 0;  // in a row
  };

  void run(const std::stop_token& stop);
  void poll(const std::string& job_key, const std::stop_token& stop);
  std::optional<Server> server_of(const std::string& job_key) const;
  bool is_at(const std::string& job_key, const std::string& ip) const;
  void note(const std::string& job_key, const std::string& ip, bool silent);
  void ask_again(const std::string& job_key);
  Duration wait(int silences) const;

  const PollerOptions options_;
  ControllerMetrics& metrics_;
  const Receiver receiver_;
  kube::WorkQueue queue_;
  mutable std::mutex mutex_;
  std::map<std::string, Server> servers_;  // by job key; each key is in the queue, or worked on
  std::vector<std::jthread> threads_;
};

}  // namespace outrigger::controller
