#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "telemetry/metrics.h"

namespace outrigger::telemetry {

/// What the pages are made of. Every function may be called from several threads at once and should
/// answer at once: it must not wait for a step.
struct StatusSource {
  /// Why the process cannot do its work yet; empty: ready.
  std::function<std::vector<std::string>()> not_ready;
  /// The state as one JSON object.
  std::function<std::string()> status_json;
  /// Asks the process to end cleanly; returns at once. Absent: there is no /stop.
  std::function<void()> stop;
  /// The plan by which work is divided, as one JSON object. Absent: there is no /plan.
  std::function<std::string()> plan_json;
  /// Asks for another plan and returns it as it will be; throws InvalidInput for one that cannot
  /// be. Absent: the plan cannot be changed from outside.
  std::function<std::string(const std::string& body)> set_plan;
  /// Takes the job as it was edited and returns what was taken as one JSON object; throws
  /// InvalidInput for what cannot be. Absent: there is no /job.
  std::function<std::string(const std::string& body)> edit_job;
};

struct StatusServerOptions {
  http::ServerOptions http;
  /// Who sends it as `Authorization: Bearer <token>` may stop the process and change its plan.
  /// Empty: nobody may.
  std::string control_token;
};

/// The pages of a process: GET /healthz (200 while it answers), /readyz (200, or 503 with the
/// reasons, one a line), /metrics, /status and /plan (JSON), and POST /stop, /plan and /job (202,
/// /job 200; 401 without the control token). Serves from construction to destruction; `metrics`
/// must outlive it. Throws IoError where the port is taken.
class StatusServer {
 public:
  StatusServer(const StatusServerOptions& options, Metrics& metrics, const StatusSource& source);
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  int port() const;

 private:
  http::Server server_;
};

}  // namespace outrigger::telemetry
