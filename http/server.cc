#include "http/server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "http/server_stream.h"

namespace outrigger::http {
namespace {

Request translate(const httplib::Request& from) {
  Request request{
      from.method, from.path, {}, {from.headers.begin(), from.headers.end()}, from.body};
  for (const auto& [name, value] : from.params) request.query.emplace(name, value);
  return request;
}

Response answer(const Server::Handler& handler, const Request& request) {
  try {
    return handler(request);
  } catch (const InvalidInput& error) {
    return {400, std::string(error.what()) + "\n"};
  } catch (const std::exception& error) {
    log::error("answering {} {}: {}", request.method, request.path, error.what());
    return {500, std::string(error.what()) + "\n"};
  }
}

/// The port bound; -1 and errno where that failed.
int bind_to(httplib::Server& server, const std::string& address, int port) {
  errno = 0;
  if (port == 0) return server.bind_to_any_port(address);
  return server.bind_to_port(address, port) ? port : -1;
}

// The library's default lets two processes share a port (SO_REUSEPORT): then a second server would
// seem to work.
void only_reuse_address(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

// What the library would spend memory on without a bound, or a stack: a body of unknown length, one
// that grows when it is unpacked, one in parts, which regular expressions read, and an answer that
// is sent many times over. Nobody who has business here asks so.
std::optional<Response> refusal_of(const httplib::Request& request) {
  if (request.has_header("Transfer-Encoding")) return Response{411, "a body needs a length\n"};
  if (request.has_header("Content-Encoding")) return Response{415, "no body is unpacked here\n"};
  if (request.is_multipart_form_data()) return Response{415, "a body in parts is not read here\n"};
  if (request.ranges.size() > 1) return Response{416, "one range is sent at a time\n"};
  return std::nullopt;
}

// What a peer makes us keep is bounded by its stream.
class BoundedServer final : public httplib::Server {
 public:
  explicit BoundedServer(const ServerOptions& options)
      // A body that is too large is read for a while yet, or its sender would see no answer.
      : limits_{.silence = options.io_timeout, .body = 8 * options.max_body} {}

 private:
  bool process_and_close_socket(socket_t given) override {
    const FileDescriptor socket(given);
    bool answered = false;
    if (svr_sock_ != INVALID_SOCKET) {  // else stop() was called
      ServerStream stream(given, limits_);
      bool closed = false;
      answered = process_request(stream, true, closed, nullptr);
    }
    ::shutdown(given, SHUT_RDWR);
    return answered;
  }

  const ServerStream::Limits limits_;
};

}  // namespace

struct Server::Impl {
  explicit Impl(const ServerOptions& options) : server(options) {}

  BoundedServer server;
  int port = 0;
  // path -> method -> handler
  std::map<std::string, std::map<std::string, Handler>> routes;
  std::jthread thread;

  void dispatch(const httplib::Request& from, httplib::Response& to) const {
    give(respond(from), to);
  }

  Response respond(const httplib::Request& from) const {
    Response response{404, "no such page\n"};
    if (const auto path = routes.find(from.path); path != routes.end()) {
      const auto method = path->second.find(from.method == "HEAD" ? "GET" : from.method);
      response = method != path->second.end()
                     ? answer(method->second, translate(from))
                     : Response{405, "this page does not take " + from.method + "\n"};
    }
    return response;
  }

  static void give(const Response& response, httplib::Response& to) {
    to.status = response.status;
    for (const auto& [name, value] : response.headers) to.set_header(name, value);
    to.set_content(response.body, response.content_type);
  }
};

Server::Server(const ServerOptions& options) : impl_(std::make_unique<Impl>(options)) {
  auto& server = impl_->server;
  const auto threads = static_cast<size_t>(options.threads);
  server.new_task_queue = [threads] {
    return new httplib::ThreadPool(threads);
  };  // the library deletes it
  server.set_socket_options(only_reuse_address);
  server.set_tcp_nodelay(true);
  server.set_read_timeout(options.io_timeout);
  server.set_write_timeout(options.io_timeout);
  server.set_payload_max_length(options.max_body);
  impl_->port = bind_to(server, options.address, options.port);
  if (impl_->port < 0 && options.address == "::" && errno == EAFNOSUPPORT)
    impl_->port = bind_to(server, "0.0.0.0", options.port);
  if (impl_->port < 0) {
    const std::string what = "listening on " + options.address + ":" + std::to_string(options.port);
    if (errno == 0) throw IoError(what + ": no such address here");
    throw_errno(what, errno);
  }
}

Server::~Server() { stop(); }

void Server::route(const std::string& method, const std::string& path, Handler handler) {
  ensure(!impl_->thread.joinable(), "a route was added to a server that runs");
  impl_->routes[path][method] = std::move(handler);
}

void Server::start() {
  ensure(!impl_->thread.joinable(), "a server was started twice");
  const auto dispatch = [impl = impl_.get()](const httplib::Request& from, httplib::Response& to) {
    impl->dispatch(from, to);
  };
  impl_->server.Post(".*", dispatch);
  // A request that names no length has no body (RFC 9112, section 6.3); the library would wait for
  // one until the peer gives up.
  impl_->server.set_pre_routing_handler(
      [dispatch](const httplib::Request& from, httplib::Response& to) {
        using HandlerResponse = httplib::Server::HandlerResponse;
        if (const auto refusal = refusal_of(from)) {
          Impl::give(*refusal, to);
        } else if (from.method == "POST" && from.has_header("Content-Length")) {
          return HandlerResponse::Unhandled;
        } else {
          dispatch(from, to);
        }
        return HandlerResponse::Handled;
      });
  impl_->thread = std::jthread([impl = impl_.get()] { impl->server.listen_after_bind(); });
  // Until the loop runs, stop() would be lost on the library.
  while (!impl_->server.is_running()) std::this_thread::yield();
}

void Server::stop() {
  if (!impl_->thread.joinable()) return;
  impl_->server.stop();
  impl_->thread.join();
}

int Server::port() const { return impl_->port; }

}  // namespace outrigger::http
