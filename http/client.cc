#include "http/client.h"

#include <csignal>
#include <mutex>

#include "common/error.h"
#include "http/connection.h"

namespace outrigger::http {
namespace {

using SteadyClock = std::chrono::steady_clock;
// Servers and balancers end idle connections after a minute or more; whoever sends just then finds
// out only by a lost answer.
constexpr std::chrono::seconds kLongestIdle{30};

// An answer's body, held to the size of a plain request's.
class BoundedBody {
 public:
  explicit BoundedBody(const ClientOptions& options) : options_(options) {}

  bool append(std::string_view piece) {
    if (text.size() + piece.size() > options_.max_body) {
      refused = "the answer is larger than " + std::to_string(options_.max_body) + " bytes";
    } else {
      text.append(piece);
    }
    return refused.empty();
  }

  std::string text;
  std::string refused;

 private:
  const ClientOptions& options_;
};

}  // namespace

struct Client::Impl {
  explicit Impl(ClientOptions given)
      : options(std::move(given)), address(parse_server_url(options.base_url)) {
    if (address.tls) tls = std::make_shared<TlsContext>(options.tls);
  }

  const ClientOptions options;
  const ServerAddress address;
  std::shared_ptr<const TlsContext> tls;
  std::mutex mutex;
  struct Idle {
    std::unique_ptr<Connection> connection;
    SteadyClock::time_point since;
  };
  std::vector<Idle> idle;  // the one used last at the end

  std::unique_ptr<Connection> take() {
    while (auto connection = take_idle()) {
      if (connection->alive()) return connection;
    }
    return std::make_unique<Connection>(address, options, tls, Connection::Use::kRequests);
  }

  // Null if there is none.
  std::unique_ptr<Connection> take_idle() {
    const std::scoped_lock lock(mutex);
    if (!idle.empty() && SteadyClock::now() - idle.back().since > kLongestIdle) idle.clear();
    if (idle.empty()) return nullptr;
    auto connection = std::move(idle.back().connection);
    idle.pop_back();
    return connection;
  }

  void give_back(std::unique_ptr<Connection> connection) {
    if (!connection->usable()) return;
    const std::scoped_lock lock(mutex);
    idle.push_back({std::move(connection), SteadyClock::now()});
  }

  Response send(const ClientRequest& request, FieldLines more, const std::stop_token& stop) {
    BoundedBody body(options);
    const auto receiver = [&](const Response&, std::string_view piece) {
      return body.append(piece);
    };
    return explained(request, stop, [&] {
      auto connection = take();
      Response response =
          connection->send(request, more, {options.timeout, options.timeout}, receiver, stop);
      if (!body.refused.empty()) throw TooLarge(body.refused);
      response.body = std::move(body.text);
      give_back(std::move(connection));
      return response;
    });
  }

  Response stream(const ClientRequest& request, FieldLines more, const StreamLimits& limits,
                  const Receiver& receiver, const std::stop_token& stop) {
    BoundedBody body(options);
    const auto sorted = [&](const Response& head, std::string_view piece) {
      return head.status / 100 == 2 ? receiver(piece) : body.append(piece);
    };
    return explained(request, stop, [&] {
      // Not one of those that are idle, nor one of them later: a stream lasts for minutes.
      Connection connection(address, options, tls, Connection::Use::kWaiting);
      Response response = connection.send(
          request, more, {limits.silence, limits.whole, limits.gather}, sorted, stop);
      if (!body.refused.empty()) throw TooLarge(body.refused);
      response.body = std::move(body.text);
      return response;
    });
  }

  // With method and URL in front of what goes wrong.
  template <typename Work>
  Response explained(const ClientRequest& request, const std::stop_token& stop,
                     const Work& work) const {
    const auto name = [&] {
      return request.method + " " + options.base_url + options.prefix + request.target;
    };
    try {
      if (!stop.stop_requested()) return work();
    } catch (const TooLarge& error) {
      throw TooLarge(name() + ": " + error.what());
    } catch (const IoError& error) {
      if (!stop.stop_requested()) throw IoError(name() + ": " + error.what());
    }
    throw Cancelled(name() + ": stopped");
  }
};

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  // The library writes to sockets whose peer may be gone.
  std::signal(SIGPIPE, SIG_IGN);
}

Client::~Client() = default;

Response Client::send(const ClientRequest& request, const std::stop_token& stop) {
  return impl_->send(request, {}, stop);
}

Response Client::send(const ClientRequest& request, FieldLines more, const std::stop_token& stop) {
  return impl_->send(request, more, stop);
}

Response Client::get(const std::string& path) { return impl_->send({"GET", path}, {}, {}); }

Response Client::post(const std::string& path, const std::string& body,
                      const std::string& content_type) {
  return impl_->send({"POST", path, {{"Content-Type", content_type}}, body}, {}, {});
}

Response Client::stream(const ClientRequest& request, const StreamLimits& limits,
                        const Receiver& receiver, const std::stop_token& stop) {
  return impl_->stream(request, {}, limits, receiver, stop);
}

Response Client::stream(const ClientRequest& request, FieldLines more, const StreamLimits& limits,
                        const Receiver& receiver, const std::stop_token& stop) {
  return impl_->stream(request, more, limits, receiver, stop);
}

}  // namespace outrigger::http
