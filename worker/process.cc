#include "worker/process.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "api/last_words.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/thread_pool.h"
#include "common/watchdog.h"
#include "transport/handshake.h"
#include "worker/fault.h"
#include "worker/growth.h"
#include "worker/job.h"
#include "worker/joining.h"
#include "worker/rejoining.h"
#include "worker/session.h"
#include "worker/status.h"
#include "worker/workshop.h"

namespace outrigger::worker {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// Ends this process when a piece of work takes longer than a step may: a file system that hangs
/// lets go of no thread, and whoever started the process starts another.
std::unique_ptr<Watchdog> watch(const api::Launch& launch, const api::TrainingJob& job,
                                const SessionCounters& counters, const Clock& clock) {
  const Duration limit = job.spec.progress_deadline;
  // What stands still with an image, else with a piece of work, else never.
  const auto progress = [&counters, waits = uint64_t{0}]() mutable {
    constexpr uint64_t kOfImages = uint64_t{1} << 62;
    if (const uint64_t sample = counters.at_sample; sample > 0) return kOfImages + sample;
    const uint64_t turns = counters.turns;
    return turns % 2 == 1 ? turns : waits += 2;
  };
  const auto bark = [&launch](const std::string& what) {
    const std::string told = what + ": a read that does not end?";
    log::error("{}", told);
    if (launch.termination_file)
      api::write_last_words(*launch.termination_file, {api::ExitCode::kHung, told, {}});
    std::_Exit(static_cast<int>(api::ExitCode::kHung));
  };
  return std::make_unique<Watchdog>(WatchdogOptions{.startup = limit, .progress = limit}, clock,
                                    progress, bark);
}

SessionResult join_once(const api::Launch& launch, const std::string& name, ThreadPool& threads,
                        WorkerPages& pages, const std::stop_token& stop) {
  const auto [link, words] = join(launch, stop);
  if (const auto* farewell = std::get_if<feed::Farewell>(&words)) return result_of(*farewell);
  const Setup& setup = std::get<Setup>(words);
  FaultPoint faults;
  faults.reached("got-setup");
  Workshop shop(setup, launch, threads);
  const SystemClock clock{};
  const auto watchdog = watch(launch, shop.job(), pages.counters(), clock);
  Hello hello = shop.hello(setup, pages.counters().turns, stop);
  hello.name = name;
  if (const auto farewell = answer(*link, hello)) return result_of(*farewell);
  if (faults.due("sent-hello")) static_cast<void>(link->flush(std::chrono::seconds(1)));
  faults.reached("sent-hello");
  log::info("joined {} for job '{}' ({} classes, incarnation {})", launch.server,
            shop.job().metadata.name, setup.classes, setup.incarnation);
  pages.joined(true);
  auto result = run_session(*link, shop.agent(), {activation_type(shop.job()), seed(shop.job())},
                            pages.counters(), stop);
  pages.joined(false);
  return result;
}

void sleep_for(Duration time, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, time, [] { return false; });
}

/// Sessions with pools of the size that fits at the time, unless the user set one.
class Pooled {
 public:
  Pooled(const api::Launch& launch, std::string name, WorkerPages& pages)
      : launch_(launch), name_(std::move(name)), pages_(pages) {}

  /// None: it is to be joined again at once, with a larger pool.
  std::optional<SessionResult> join(const std::stop_token& stop) {
    if (threads_ == nullptr)
      threads_ = std::make_unique<ThreadPool>(launch_.threads.value_or(available_cores()));
    pages_.cores(threads_->size());
    std::stop_source session;
    const std::stop_callback forward(stop, [&session] { session.request_stop(); });
    std::optional<Growth> growth;
    if (!launch_.threads) growth.emplace(threads_->size(), session);
    const auto outgrown = [&] { return growth && growth->seen() && !stop.stop_requested(); };
    try {
      auto result = join_once(launch_, name_, *threads_, pages_, session.get_token());
      const bool over = result.end == SessionEnd::kFinished || result.end == SessionEnd::kRefused;
      if (over || !outgrown()) return result;
    } catch (const Cancelled&) {
      if (!outgrown()) throw;
    }
    pages_.joined(false);
    threads_.reset();
    return std::nullopt;
  }

 private:
  const api::Launch& launch_;
  const std::string name_;
  WorkerPages& pages_;
  std::unique_ptr<ThreadPool> threads_;
};

api::ExitCode join_for_ever(const api::Launch& launch, const std::stop_token& stop) {
  WorkerPages pages(launch);
  Pooled sessions(launch, host_name() + "/" + std::to_string(launch.index), pages);
  Rejoining rejoining;
  while (!stop.stop_requested()) {
    try {
      const auto result = sessions.join(stop);
      if (!result) continue;
      if (result->end == SessionEnd::kStopped) break;
      if (result->end == SessionEnd::kFinished) {
        log::info("the server ended the work: {}", result->reason);
        return api::ExitCode::kDone;
      }
      rejoining.session_over(*result);
      log::warning("the link is over: {}; joining again", result->reason);
    } catch (const transport::HandshakeRefused& refused) {
      rejoining.refused(refused.what());
      log::warning("{}", refused.what());
    } catch (const Cancelled&) {
      break;  // asked to stop before it had joined
    } catch (const IoError& error) {
      log::info("cannot join {} yet: {}", launch.server, error.what());
    }
    pages.joined(false);
    sleep_for(rejoining.next_wait(), stop);
  }
  log::info("stopped");
  return api::ExitCode::kDone;
}

}  // namespace

api::ExitCode run_worker(const api::Launch& launch, const std::stop_token& stop) {
  try {
    return join_for_ever(launch, stop);
  } catch (const std::exception& error) {
    if (launch.termination_file)
      api::write_last_words(*launch.termination_file, {api::exit_code_of(error), error.what(), {}});
    throw;
  }
}

}  // namespace outrigger::worker
