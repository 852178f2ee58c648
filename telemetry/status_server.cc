#include "telemetry/status_server.h"

#include <utility>

#include "common/hash.h"
#include "common/log.h"

namespace outrigger::telemetry {
namespace {

using http::Request;
using http::Response;

// By hash, so that the time tells neither the token nor its length.
bool authorized(const Request& request, const std::string& token) {
  if (token.empty()) return false;
  const auto bytes_of = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::string sent = http::find_header(request.headers, "Authorization").value_or("");
  return equal_in_constant_time(sha256(bytes_of(sent)), sha256(bytes_of("Bearer " + token)));
}

/// `handler` for those who have the token.
http::Server::Handler guarded(const std::string& token, http::Server::Handler handler) {
  return [token, handler = std::move(handler)](const Request& request) {
    if (!authorized(request, token))
      return Response{401, "wanted is Authorization: Bearer <control token>\n"};
    return handler(request);
  };
}

Response readiness(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return {200, "ready\n"};
  Response response{503, ""};
  for (const auto& reason : reasons) response.body += reason + "\n";
  return response;
}

}  // namespace

StatusServer::StatusServer(const StatusServerOptions& options, Metrics& metrics,
                           const StatusSource& source)
    : server_(options.http) {
  server_.route("GET", "/healthz", [](const Request&) { return Response{200, "ok\n"}; });
  server_.route("GET", "/readyz",
                [ask = source.not_ready](const Request&) { return readiness(ask()); });
  server_.route("GET", "/metrics", [&metrics](const Request&) {
    return Response{200, metrics.exposition(), "text/plain; version=0.0.4; charset=utf-8"};
  });
  server_.route("GET", "/status", [ask = source.status_json](const Request&) {
    return Response{200, ask() + "\n", "application/json"};
  });
  if (source.plan_json) {
    server_.route("GET", "/plan", [ask = source.plan_json](const Request&) {
      return Response{200, ask() + "\n", "application/json"};
    });
  }
  if (source.set_plan) {
    server_.route("POST", "/plan",
                  guarded(options.control_token, [set = source.set_plan](const Request& request) {
                    return Response{202, set(request.body) + "\n", "application/json"};
                  }));
  }
  if (source.edit_job) {
    server_.route("POST", "/job",
                  guarded(options.control_token, [edit = source.edit_job](const Request& request) {
                    return Response{200, edit(request.body) + "\n", "application/json"};
                  }));
  }
  if (source.stop) {
    server_.route("POST", "/stop",
                  guarded(options.control_token, [stop = source.stop](const Request& request) {
                    log::info("asked to stop by {} /stop", request.method);
                    stop();
                    return Response{202, "stopping\n"};
                  }));
  }
  server_.start();
}

int StatusServer::port() const { return server_.port(); }

}  // namespace outrigger::telemetry
