#include "worker/growth.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "common/log.h"
#include "common/thread_name.h"

namespace outrigger::worker {
namespace {

/// None where the machine does not say: that is no news.
int asked(const std::function<int()>& cores) {
  try {
    return cores();
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

Growth::Growth(int threads, std::stop_source session, GrowthOptions options)
    : watcher_([this, threads, session = std::move(session), options = std::move(options)](
                   const std::stop_token& over) { watch(threads, session, options, over); }) {}

void Growth::watch(int threads, const std::stop_source& session, const GrowthOptions& options,
                   const std::stop_token& over) {
  name_thread("growth");
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any ended;
  int more = 0;
  while (!ended.wait_for(lock, over, options.look, [&] { return over.stop_requested(); })) {
    const int cores = asked(options.cores);
    more = cores > threads ? more + 1 : 0;
    if (more < options.looks) continue;
    log::info("this process may use {} cores now and has {} threads: joining again with more",
              cores, threads);
    seen_ = true;
    session.request_stop();
    return;
  }
}

}  // namespace outrigger::worker
