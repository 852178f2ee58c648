#include "worker/status.h"

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/log.h"

namespace outrigger::worker {

WorkerPages::WorkerPages(const api::Launch& launch) {
  telemetry::StatusSource source;
  source.not_ready = [this] {
    return joined_ ? std::vector<std::string>{}
                   : std::vector<std::string>{"not joined to a server"};
  };
  source.status_json = [this] { return status(); };
  try {
    telemetry::StatusServerOptions options;
    options.http.address = launch.listen;
    options.http.port = launch.status_port;
    options.http.threads = 2;
    server_ = std::make_unique<telemetry::StatusServer>(options, metrics_, source);
    log::debug("status pages on port {}", server_->port());
  } catch (const IoError& error) {
    log::warning("{}; this worker has no status pages", error.what());
  }
}

std::string WorkerPages::status() const {
  return nlohmann::json{{"role", "worker"},
                        {"joined", joined_.load()},
                        {"cores", cores_.load()},
                        {"microBatches", counters_.micro_batches.value()},
                        {"stemGradients", counters_.stem_gradients.value()},
                        {"brokenSamples", counters_.broken_samples.value()},
                        {"failedReads", counters_.failed_reads.value()},
                        {"busySeconds", counters_.busy_seconds.value()},
                        {"unfinishedLeases", counters_.unfinished.value()}}
      .dump();
}

}  // namespace outrigger::worker
