#include "cli/local_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "api/exit_codes.h"
#include "api/launch.h"
#include "cli/kept_process.h"
#include "cli/run_secrets.h"
#include "common/child_process.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "common/thread_pool.h"
#include "gpu-server/doors.h"
#include "gpu-server/report/timeline.h"
#include "gpu-server/run_lock.h"
#include "telemetry/trace.h"

namespace outrigger::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kWorkerProgram = "outrigger-worker";

class LocalRun {
 public:
  LocalRun(const LocalRunOptions& options, const api::TrainingJob& job, std::stop_token stop)
      : options_(options), stop_(std::move(stop)), replicas_(api::rank_count(job.spec)) {
    base_.job_file = options.job_file;
    base_.replicas = replicas_;
    base_.listen = "127.0.0.1";
    base_.port = 0;
    base_.status_port = 0;
    base_.mounts = options.mounts;
    base_.resume = options.resume;
    base_.output = options.output;
    base_.log_level = options.log_level;
    base_.emulate = options.emulate;
    base_.link_megabits = options.link_megabits;
    base_.link_milliseconds = options.link_milliseconds;
    base_.token_file = secrets_.token_file();
    result_.directory = api::run_directory(job, base_);
    gpu_server::remove_former_endpoints(job, base_);
    remove_former_traces();
  }

  LocalRunResult run() {
    // One that is not there is told of before anything runs, and not tried again.
    if (options_.workers > 0) sibling_program(kWorkerProgram);
    start_servers();
    make_workers();
    while (!servers_ended()) {
      if (stop_.stop_requested()) stop_servers();
      if (!stopping_) keep_workers();
      std::this_thread::sleep_for(milliseconds(50));
    }
    for (KeptProcess& worker : workers_) worker.terminate();
    workers_.clear();
    merge_traces();
    return result_;
  }

 private:
  std::filesystem::path endpoint_file(int rank) const {
    return result_.directory / gpu_server::endpoints_name(rank);
  }

  /// None of a single rank: its trace is the run's already.
  std::vector<std::filesystem::path> traces_of_ranks() const {
    std::vector<std::filesystem::path> traces;
    for (int rank = 0; rank < replicas_ && replicas_ > 1; ++rank)
      traces.push_back(result_.directory / gpu_server::trace_name(rank));
    return traces;
  }

  /// A rank that is killed leaves none, and what lies there would be taken for its.
  void remove_former_traces() const {
    std::error_code ignored;
    for (const auto& trace : traces_of_ranks()) std::filesystem::remove(trace, ignored);
  }

  /// The first rank's file then shows all of them. A picture for people: the run is what it is
  /// without one.
  void merge_traces() const {
    auto traces = traces_of_ranks();
    std::error_code ignored;
    std::erase_if(traces,
                  [&](const auto& trace) { return !std::filesystem::exists(trace, ignored); });
    if (traces.empty()) return;
    try {
      write_file_atomically(result_.directory / gpu_server::trace_name(0),
                            telemetry::merged_traces(traces));
    } catch (const std::exception& error) {
      log::warning("each rank's trace is in a file of its own: {}", error.what());
    }
  }

  void start_servers() {
    for (int rank = 0; rank < replicas_; ++rank) {
      api::Launch launch = base_;
      launch.role = api::Role::kServer;
      launch.rank = rank;
      launch.device = options_.device;
      launch.ranks_on_machine = replicas_;
      launch.threads = server_threads(options_, replicas_, available_cores());
      launch.emulate_cores = options_.device_cores;
      const auto log =
          rank == 0
              ? std::nullopt
              : std::optional(result_.directory / ("server-" + std::to_string(rank) + ".log"));
      if (rank > 0) launch.rendezvous = rendezvous();
      servers_.emplace_back(sibling_program("outrigger-gpu-server"), api::launch_arguments(launch),
                            log);
    }
  }

  /// Rank 0's port, which the other ranks meet at.
  std::string rendezvous() {
    const auto port = wait_for_port(0);
    return port ? "127.0.0.1:" + std::to_string(*port) : "127.0.0.1:1";
  }

  /// The port that a server has written down; nothing if the server ended first.
  std::optional<int> wait_for_port(int rank) {
    while (!stop_.stop_requested()) {
      if (std::filesystem::exists(endpoint_file(rank))) {
        return nlohmann::json::parse(read_file(endpoint_file(rank))).at("port").get<int>();
      }
      if (servers_.at(static_cast<size_t>(rank)).poll()) return std::nullopt;
      std::this_thread::sleep_for(milliseconds(20));
    }
    return std::nullopt;
  }

  void make_workers() {
    const int share = std::max(1, available_cores() / std::max(1, options_.workers));
    for (int index = 0; index < options_.workers; ++index) {
      const auto port = wait_for_port(index % replicas_);
      if (!port) return;
      api::Launch launch = base_;
      launch.role = api::Role::kWorker;
      launch.index = index;
      launch.server = "127.0.0.1:" + std::to_string(*port);
      launch.threads = options_.worker_threads.value_or(share);
      launch.emulate_cores = options_.worker_cores;
      const auto log = result_.directory / ("worker-" + std::to_string(index) + ".log");
      workers_.emplace_back(fmt::format("worker {} (its log is {})", index, log.string()),
                            [arguments = api::launch_arguments(launch), log] {
                              return ChildProcess(sibling_program(kWorkerProgram), arguments, log);
                            });
    }
  }

  void keep_workers() {
    const auto now = std::chrono::steady_clock::now();
    for (KeptProcess& worker : workers_) result_.worker_restarts += worker.keep(now) ? 1 : 0;
  }

  void stop_servers() {
    if (stopping_) return;
    stopping_ = true;
    for (ChildProcess& server : servers_) server.terminate();
  }

  /// When one replica fails, the others are stopped: all of them go on together or not at all.
  bool servers_ended() {
    bool all = true;
    for (ChildProcess& server : servers_) {
      const auto status = server.poll();
      if (!status) {
        all = false;
      } else if (*status != 0) {
        if (result_.exit_status == 0) note_failure(*status);
        stop_servers();
      }
    }
    return all;
  }

  /// Of the server that is seen to have failed first; another may be what it failed of.
  void note_failure(int status) {
    result_.exit_status = status_of_run(status, stop_.stop_requested());
    for (size_t rank = 0; rank < servers_.size(); ++rank) {
      const std::string death = told_death(servers_[rank].poll().value_or(0), stopping_);
      if (death.empty()) continue;
      log::error("the server{} {}; what it saved is kept: `outrigger run --resume` goes on from it",
                 replicas_ == 1 ? "" : fmt::format(" of rank {}", rank), death);
    }
  }

  const LocalRunOptions options_;
  const std::stop_token stop_;
  const int replicas_;
  const RunSecrets secrets_;
  api::Launch base_;
  LocalRunResult result_;
  std::vector<ChildProcess> servers_;
  std::vector<KeptProcess> workers_;
  bool stopping_ = false;
};

}  // namespace

int status_of_run(int server_status, bool stop_asked) {
  constexpr int kTerminated = 128 + SIGTERM;
  return stop_asked && server_status == kTerminated ? static_cast<int>(api::ExitCode::kStopped)
                                                    : server_status;
}

std::string told_death(int server_status, bool stop_sent) {
  const int signal = server_status - 128;
  const bool asked = stop_sent && (signal == SIGTERM || signal == SIGINT);
  if (signal <= 0 || asked) return "";
  return fmt::format("was killed by signal {}{}", signal,
                     signal == SIGKILL ? " (out of memory?)" : "");
}

int server_threads(const LocalRunOptions& options, int servers, int cores) {
  return options.threads.value_or(std::max(1, cores / servers));
}

LocalRunResult run_locally(const LocalRunOptions& options, const api::TrainingJob& job,
                           const std::stop_token& stop) {
  return LocalRun(options, job, stop).run();
}

}  // namespace outrigger::cli
