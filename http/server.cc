#include "http/server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "common/error.h"
#include "common/log.h"

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

}  // namespace

struct Server::Impl {
  httplib::Server server;
  int port = 0;
  // path -> method -> handler
  std::map<std::string, std::map<std::string, Handler>> routes;
  std::jthread thread;

  void dispatch(const httplib::Request& from, httplib::Response& to) const {
    Response response{404, "no such page\n"};
    if (const auto path = routes.find(from.path); path != routes.end()) {
      const auto method = path->second.find(from.method == "HEAD" ? "GET" : from.method);
      response = method != path->second.end()
                     ? answer(method->second, translate(from))
                     : Response{405, "this page does not take " + from.method + "\n"};
    }
    to.status = response.status;
    for (const auto& [name, value] : response.headers) to.set_header(name, value);
    to.set_content(response.body, response.content_type);
  }
};

Server::Server(const ServerOptions& options) : impl_(std::make_unique<Impl>()) {
  auto& server = impl_->server;
  const auto threads = static_cast<size_t>(options.threads);
  server.new_task_queue = [threads] {
    return new httplib::ThreadPool(threads);
  };  // the library deletes it
  server.set_socket_options(only_reuse_address);
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(1);
  // How long a new connection may say nothing, in whole seconds.
  server.set_keep_alive_timeout(
      std::chrono::ceil<std::chrono::seconds>(options.io_timeout).count());
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
  impl_->server.Get(".*", dispatch).Post(".*", dispatch);
  // A request that names no length has no body (RFC 9112, section 6.3); the library would wait for
  // one until the peer gives up.
  impl_->server.set_pre_routing_handler(
      [dispatch](const httplib::Request& from, httplib::Response& to) {
        if (from.method != "POST" || from.has_header("Content-Length") ||
            from.has_header("Transfer-Encoding"))
          return httplib::Server::HandlerResponse::Unhandled;
        dispatch(from, to);
        return httplib::Server::HandlerResponse::Handled;
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
