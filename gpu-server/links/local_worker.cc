#include "gpu-server/links/local_worker.h"

#include <condition_variable>
#include <utility>

#include "common/log.h"
#include "common/thread_name.h"
#include "transport/memory_link.h"
#include "worker/session.h"

namespace outrigger::gpu_server {

LocalWorker::LocalWorker(const worker::AgentOptions& options, const nn::Graph& graph,
                         const nn::Backend& backend, int threads, worker::PixelSource& pixels,
                         const worker::WireContext& context, telemetry::Metrics& metrics,
                         std::function<void(std::exception_ptr)> failed)
    : threads_(threads),
      agent_(options, graph, backend, threads_, pixels),
      counters_(metrics),
      context_(context),
      failed_(std::move(failed)) {
  auto ends = transport::make_memory_links();
  server_end_ = std::move(ends.first);
  worker_end_ = std::move(ends.second);
  thread_ = std::jthread([this](const std::stop_token& stop) {
    name_thread("local-worker");
    try {
      worker::run_session(*worker_end_, agent_, context_, counters_, stop, "local-receive");
    } catch (const std::exception& error) {  // no memory, too: the others can go on without it
      log::error("the local worker ended: {}", error.what());
      failed_(std::current_exception());
      worker_end_->close(error.what());
    }
    // Until then others may ask for this thread's time.
    std::unique_lock lock(mutex_);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
  });
}

LocalWorker::~LocalWorker() {
  thread_.request_stop();
  worker_end_->close("the server ends");
}

}  // namespace outrigger::gpu_server
