#include "gpu-server/ranks/rank_processes.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/exit_codes.h"
#include "api/last_words.h"
#include "api/parse.h"
#include "common/child_process.h"
#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "common/thread_pool.h"
#include "gpu-server/doors.h"
#include "gpu-server/run_lock.h"
#include "transport/address.h"

namespace outrigger::gpu_server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long ranks may take to notice that one of them has failed, and to say so.
constexpr std::chrono::seconds kFarewell{30};
constexpr milliseconds kLook{20};
constexpr int kLastPort = 65535;

bool is_failure(int status) {
  return status != 0 && status != static_cast<int>(api::ExitCode::kStopped);
}

/// The port of the one that is `index` behind the first; 0 stays any free one.
int port_behind(int first, int index) { return first == 0 ? 0 : first + index; }

void check_ports(const char* what, int first, int ranks) {
  if (first == 0 || first + ranks - 1 <= kLastPort) return;
  throw InvalidInput(std::string(what) + ": " + std::to_string(first) +
                     " is too large: " + std::to_string(ranks) +
                     " ranks take ports in a row, up to " + std::to_string(kLastPort));
}

class RankProcesses {
 public:
  RankProcesses(const api::Launch& launch, const api::TrainingJob& job, std::stop_token stop)
      : launch_(launch),
        job_(job),
        stop_(std::move(stop)),
        first_endpoints_(api::run_directory(job, launch) / endpoints_name(0)) {
    if (!launch_.port) launch_.port = job.spec.network.port;
    check_ports("spec.network.port", *launch_.port, launch.ranks);
    check_ports("--status-port", launch.status_port, launch.ranks);
    if (launch.token_file.empty())
      throw InvalidInput(
          "--token-file is missing: --ranks that start here join each other with it");
  }

  int run() {
    start_all();
    while (!all_ended()) {
      if (stop_.stop_requested()) ask_to_end();
      if (over_at_ && steady_clock::now() > *over_at_) {
        for (ChildProcess& child : children_) child.kill();
      }
      std::this_thread::sleep_for(kLook);
    }
    return tell();
  }

 private:
  struct End {
    int index;
    int status;
  };

  std::filesystem::path words_of(int index) const {
    return folder_.path() / ("last-words-" + std::to_string(index));
  }

  void start_all() {
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    const bool meet_here = launch_.rendezvous.empty() && launch_.rank == 0;
    if (meet_here) remove_former_endpoints(job_, launch_);
    std::string meeting = launch_.rendezvous;
    for (int index = 0; index < launch_.ranks; ++index) {
      if (index == 1 && meet_here) meeting = first_ranks_address();
      if (index > 0 && meet_here && meeting.empty()) return;  // it has ended, or all are to end
      api::Launch launch = launch_of_rank(launch_, index);
      launch.termination_file = words_of(index);
      launch.rendezvous = launch.rank == 0 ? "" : meeting;
      children_.emplace_back(program, api::launch_arguments(launch), std::nullopt);
    }
    log::info("ranks {} to {} of {} run here", launch_.rank, launch_.rank + launch_.ranks - 1,
              launch_.replicas);
  }

  /// Where it takes joins; empty if it ended first, or a stop came.
  std::string first_ranks_address() {
    while (!stop_.stop_requested() && !children_[0].poll()) {
      if (std::filesystem::exists(first_endpoints_)) {
        const auto endpoints = nlohmann::json::parse(read_file(first_endpoints_));
        return to_string(
            transport::reached_here({launch_.listen, endpoints.at("port").get<uint16_t>()}));
      }
      std::this_thread::sleep_for(kLook);
    }
    return "";
  }

  bool all_ended() {
    bool all = true;
    for (int index = 0; std::cmp_less(index, children_.size()); ++index) {
      const auto status = children_[static_cast<size_t>(index)].poll();
      if (!status) {
        all = false;
      } else if (!std::ranges::count(ends_, index, &End::index)) {
        ends_.push_back({index, *status});
        if (is_failure(*status)) give_up(ends_.back());
      }
    }
    return all;
  }

  /// The first failure ends all. What ends later than its time was killed: that tells no cause.
  void give_up(const End& end) {
    log::error("rank {} ended with status {}", launch_.rank + end.index, end.status);
    const auto now = steady_clock::now();
    if (over_at_ && now > *over_at_) return;
    const bool noticed_only = end.status == static_cast<int>(api::ExitCode::kPeerLost);
    if (!cause_ || (!noticed_only && cause_is_peer_)) {
      cause_ = end;
      cause_is_peer_ = noticed_only;
    }
    if (!over_at_) over_at_ = now + kFarewell;
    ask_to_end();
  }

  void ask_to_end() {
    if (std::exchange(asked_, true)) return;
    for (ChildProcess& child : children_) child.terminate();
  }

  int tell() const {
    End told{0, 0};
    for (const End& end : ends_) {
      if (end.status != 0) told = end;
    }
    if (cause_) told = *cause_;
    if (launch_.termination_file) repeat_words(told);
    return told.status;
  }

  void repeat_words(const End& end) const {
    if (!std::filesystem::exists(words_of(end.index))) return;
    auto words = api::parse_last_words(read_file(words_of(end.index)));
    if (!words) return;
    if (is_failure(end.status))
      words->message = "rank " + std::to_string(launch_.rank + end.index) + ": " + words->message;
    api::write_last_words(*launch_.termination_file, *words);
  }

  api::Launch launch_;
  const api::TrainingJob job_;
  const std::stop_token stop_;
  const std::filesystem::path first_endpoints_;
  const TemporaryDirectory folder_{"outrigger-ranks"};
  std::vector<ChildProcess> children_;
  std::vector<End> ends_;  // in the order in which they were seen
  std::optional<End> cause_;
  bool cause_is_peer_ = false;
  bool asked_ = false;
  std::optional<steady_clock::time_point> over_at_;  // since one has failed
};

}  // namespace

api::Launch launch_of_rank(const api::Launch& all, int index) {
  api::Launch launch = all;
  launch.ranks = 1;
  launch.ranks_on_machine = std::max(all.ranks_on_machine, all.ranks);
  launch.rank = all.rank + index;
  if (all.port) launch.port = port_behind(*all.port, index);
  launch.status_port = port_behind(all.status_port, index);
  const int cores = all.threads.value_or(available_cores());
  const int part = cores / all.ranks + (index < cores % all.ranks ? 1 : 0);
  launch.threads = std::max(1, part);
  return launch;
}

int run_ranks(const api::Launch& launch, const std::stop_token& stop) {
  try {
    return RankProcesses(launch, api::load_training_job(launch.job_file), stop).run();
  } catch (const std::exception& error) {
    if (launch.termination_file)
      api::write_last_words(*launch.termination_file, {api::exit_code_of(error), error.what(), {}});
    throw;
  }
}

}  // namespace outrigger::gpu_server
