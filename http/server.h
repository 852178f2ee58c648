#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "http/message.h"

namespace outrigger::http {

struct ServerOptions {
  /// The address to listen on: all of IPv4 unless told; "::" is all of both families, or of IPv4
  /// where the machine has no other.
  std::string address = "0.0.0.0";
  /// 0: any free port, see Server::port().
  int port = 0;
  /// Requests answered at once; more wait. Few, so that health never waits long behind anything
  /// else.
  int threads = 8;
  /// For each read from and write to a peer: one that stalls holds a thread no longer.
  std::chrono::milliseconds io_timeout{5000};
  /// A larger request body is refused with 413.
  size_t max_body = size_t{1} << 20;
};

/// A small HTTP/1.1 server for what a person, Kubernetes or Prometheus may ask. A connection is
/// closed after its answer, so that idle peers hold no thread.
///
/// Add routes, then start(). Handlers run on the server's threads, several at once. A handler that
/// throws InvalidInput is answered with 400 and its text, any other exception with 500 and a line
/// in the log. What no route matches is 404, and 405 where only the method is wrong.
///
/// Whoever asks makes it keep 32 KiB of a head (400 for more) and max_body of a body at most, for
/// each thread. A body that is packed or in parts is refused with 415, one without a length
/// (chunked, say) with 411, more than one range with 416.
class Server {
 public:
  using Handler = std::function<Response(const Request&)>;

  /// Binds at once, so that nobody takes the port between. Throws IoError that names address and
  /// port where it is taken or not allowed.
  explicit Server(const ServerOptions& options);
  /// As stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Answers `method` (GET or POST) on exactly `path`. Before start() only.
  void route(const std::string& method, const std::string& path, Handler handler);
  void start();
  /// Ends listening and waits for the handlers that run. Not from a handler. Safe to repeat.
  void stop();
  /// The port bound.
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrigger::http
