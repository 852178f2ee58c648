#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "common/processor_clock.h"
#include "common/thread_pool.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "transport/link.h"
#include "worker/counters.h"
#include "worker/protocol/protocol.h"
#include "worker/work/agent.h"
#include "worker/work/file_pixels.h"

namespace outrigger::gpu_server {

/// The worker inside the server's process: the same agent on a thread and cores of its own, behind
/// a link in memory.
class LocalWorker {
 public:
  /// References must outlive this. `threads`: how many cores it may use. `failed` is told, on its
  /// thread and before the link closes, of an exception that ends it.
  LocalWorker(const worker::AgentOptions& options, const nn::Graph& graph,
              const nn::Backend& backend, int threads, worker::PixelSource& pixels,
              const worker::WireContext& context, telemetry::Metrics& metrics,
              std::function<void(std::exception_ptr)> failed);
  ~LocalWorker();

  /// The server's end of the link; once.
  std::unique_ptr<transport::Link> take_server_end() { return std::move(server_end_); }
  /// Of its thread, as long as this lives.
  ProcessorClock processor_clock() { return ProcessorClock(thread_.native_handle()); }

 private:
  ThreadPool threads_;
  worker::Agent agent_;
  worker::SessionCounters counters_;
  const worker::WireContext context_;
  const std::function<void(std::exception_ptr)> failed_;
  std::unique_ptr<transport::Link> server_end_;
  std::unique_ptr<transport::Link> worker_end_;
  std::mutex mutex_;  // of the thread's sleep at the end
  std::jthread thread_;
};

}  // namespace outrigger::gpu_server
