#include "http/client.h"

#include <csignal>
#include <mutex>

#include "common/error.h"
#include "http/connection.h"

namespace outrigger::http {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Servers and balancers end idle connections after a minute or more; whoever sends just then finds
// out only by a lost answer.
constexpr std::chrono::seconds kLongestIdle{30};

std::string in_ms(milliseconds time) { return std::to_string(time.count()) + " ms"; }

std::string describe(httplib::Error error, milliseconds silence) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return "cannot connect";
    case httplib::Error::Read:
      return "the connection was closed, or no answer came within " + in_ms(silence);
    case httplib::Error::SSLConnection:
      return "no TLS connection could be made";
    case httplib::Error::SSLLoadingCerts:
      return "the file of trusted authorities cannot be read";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not trusted or is not for this host";
    default:
      return httplib::to_string(error);
  }
}

Response translate(const httplib::Response& from) {
  Response response{from.status, {}, from.get_header_value("Content-Type"), {}};
  for (const auto& [name, value] : from.headers) response.headers.emplace_back(name, value);
  return response;
}

// An answer's body, held to the limits of a plain request.
class BoundedBody {
 public:
  BoundedBody(const ClientOptions& options, SteadyClock::time_point deadline)
      : options_(options), deadline_(deadline) {}

  bool append(const char* data, size_t size) {
    if (text.size() + size > options_.max_body) {
      refused = "the answer is larger than " + std::to_string(options_.max_body) + " bytes";
    } else if (SteadyClock::now() > deadline_) {
      refused = "the answer took longer than " + in_ms(options_.timeout);
    } else {
      text.append(data, size);
    }
    return refused.empty();
  }

  std::string text;
  std::string refused;

 private:
  const ClientOptions& options_;
  SteadyClock::time_point deadline_;
};

}  // namespace

struct Client::Impl {
  explicit Impl(ClientOptions given)
      : options(std::move(given)), address(parse_server_url(options.base_url)), tls(options.tls) {}

  ClientOptions options;
  ServerAddress address;
  TlsMaterial tls;
  std::mutex mutex;
  struct Idle {
    std::unique_ptr<Connection> connection;
    SteadyClock::time_point since;
  };
  std::vector<Idle> idle;  // the one used last at the end

  std::unique_ptr<Connection> take() {
    const std::scoped_lock lock(mutex);
    if (!idle.empty() && SteadyClock::now() - idle.back().since > kLongestIdle) idle.clear();
    if (idle.empty())
      return std::make_unique<Connection>(address, options, tls, Connection::Use::kRequests);
    auto connection = std::move(idle.back().connection);
    idle.pop_back();
    return connection;
  }

  void give_back(std::unique_ptr<Connection> connection) {
    if (!connection->usable()) return;
    const std::scoped_lock lock(mutex);
    idle.push_back({std::move(connection), SteadyClock::now()});
  }

  std::string name_of(const ClientRequest& request) const {
    return request.method + " " + options.base_url + request.target;
  }

  httplib::Request translate(const ClientRequest& from) const {
    httplib::Request request;
    request.method = from.method;
    request.path = from.target;
    request.body = from.body;
    for (const auto& [name, value] : options.headers) request.headers.emplace(name, value);
    for (const auto& [name, value] : from.headers) request.headers.emplace(name, value);
    return request;
  }

  Response send(const ClientRequest& from, const std::stop_token& stop) {
    httplib::Request request = translate(from);
    BoundedBody body(options, SteadyClock::now() + options.timeout);
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      return body.append(data, size);
    };
    auto connection = take();
    const httplib::Result result = connection->send(request, options.timeout, stop);
    if (!result) fail(from, result.error(), {options.timeout, body.refused}, stop);
    Response response = http::translate(*result);
    response.body = std::move(body.text);
    give_back(std::move(connection));
    return response;
  }

  Response stream(const ClientRequest& from, const StreamLimits& limits, const Receiver& receiver,
                  const std::stop_token& stop) {
    httplib::Request request = translate(from);
    const auto deadline = SteadyClock::now() + limits.whole;
    BoundedBody body(options, deadline);
    std::string refused;
    Response response;
    bool enough = false;
    request.response_handler = [&](const httplib::Response& head) {
      response = http::translate(head);
      return true;
    };
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      if (response.status / 100 != 2) return body.append(data, size);
      if (SteadyClock::now() > deadline) refused = "lasted longer than " + in_ms(limits.whole);
      enough = refused.empty() && !receiver({data, size});
      return refused.empty() && !enough;
    };
    // Not one of those that are idle, nor one of them later: a stream lasts for minutes.
    Connection connection(address, options, tls, Connection::Use::kWaiting);
    const httplib::Result result = connection.send(request, limits.silence, stop);
    if (!result && !enough) {
      fail(from, result.error(), {limits.silence, refused.empty() ? body.refused : refused}, stop);
    }
    response.body = std::move(body.text);
    return response;
  }

  struct Reason {
    milliseconds silence;
    std::string refused;  // ours; empty: the library's error says it
  };
  [[noreturn]] void fail(const ClientRequest& request, httplib::Error error, const Reason& reason,
                         const std::stop_token& stop) const {
    if (stop.stop_requested()) throw Cancelled(name_of(request) + ": stopped");
    throw IoError(name_of(request) + ": " +
                  (reason.refused.empty() ? describe(error, reason.silence) : reason.refused));
  }
};

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  // The library writes to sockets whose peer may be gone.
  std::signal(SIGPIPE, SIG_IGN);
}

Client::~Client() = default;

Response Client::send(const ClientRequest& request, const std::stop_token& stop) {
  return impl_->send(request, stop);
}

Response Client::get(const std::string& path) { return impl_->send({"GET", path}, {}); }

Response Client::post(const std::string& path, const std::string& body,
                      const std::string& content_type) {
  return impl_->send({"POST", path, {{"Content-Type", content_type}}, body}, {});
}

Response Client::stream(const ClientRequest& request, const StreamLimits& limits,
                        const Receiver& receiver, const std::stop_token& stop) {
  return impl_->stream(request, limits, receiver, stop);
}

}  // namespace outrigger::http
