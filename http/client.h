#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/error.h"
#include "http/message.h"

namespace outrigger::http {

/// What both sides prove in TLS; all texts are PEM.
struct TlsOptions {
  /// The authorities to trust, each by itself, whoever signed it; empty: the system's.
  std::string authorities = {};
  /// Our certificate, followed by its intermediates, and its key; empty: none is shown.
  std::string certificate = {};
  std::string key = {};
  /// Whether the server's certificate and host name are verified. False lets anyone in between
  /// read and change everything.
  bool verify = true;
};

struct ClientOptions {
  /// "http://host:port" or "https://host:port".
  std::string base_url;
  /// For connecting, for each read and write, and for the whole answer.
  std::chrono::milliseconds timeout{5000};
  /// For connecting alone, where that is less than `timeout`.
  std::chrono::milliseconds connect_timeout{5000};
  /// A larger answer is an error.
  size_t max_body = size_t{1} << 20;
  TlsOptions tls = {};
  /// Sent with every request (Authorization, say).
  Headers headers = {};
  /// In front of every target: "/clusters/one".
  std::string prefix = {};
};

/// Fields that a request has beside its own, each as add_field() wrote it: made once, sent often.
using FieldLines = std::span<const std::string_view>;

/// How long a streamed answer may last, and be silent.
struct StreamLimits {
  /// Nothing came for so long: the peer is taken for dead.
  std::chrono::milliseconds silence{150'000};
  /// The stream is ended as soon as something, or silence, comes after so long.
  std::chrono::milliseconds whole{660'000};
  /// Within so long after a piece no other is read: what comes meanwhile is read at once then, and
  /// wakes this process once. Zero: everything is read as it comes.
  std::chrono::milliseconds gather{0};
};

/// An answer is larger than max_body. To ask again for the same is of no use.
class TooLarge : public IoError {
 public:
  using IoError::IoError;
};

/// Asks one server. Connections are kept and used again; a peer that vanishes is noticed by TCP
/// keepalive (after half a minute). Thread-safe: concurrent requests use a connection each.
class Client {
 public:
  /// Takes a piece of a streamed body; false ends the stream. Must not throw.
  using Receiver = std::function<bool(std::string_view piece)>;

  /// Does not connect. Throws InvalidInput where the URL is none or a PEM text cannot be read.
  explicit Client(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The server's answer, whatever its status. Throws IoError with method, URL and cause where
  /// there is none: not reached, certificate not trusted, or time over; TooLarge; Cancelled
  /// once `stop` is requested, from any thread.
  Response send(const ClientRequest& request, const std::stop_token& stop = {});
  Response send(const ClientRequest& request, FieldLines more, const std::stop_token& stop);
  Response get(const std::string& path);
  Response post(const std::string& path, const std::string& body,
                const std::string& content_type = "application/json");

  /// As send(), but the body of an answer with status 2xx goes to `receiver` piece by piece as it
  /// comes, without bound, and is not in the response. Returns when the server ended the body or
  /// the receiver wanted no more; a body that breaks off is an IoError.
  Response stream(const ClientRequest& request, const StreamLimits& limits,
                  const Receiver& receiver, const std::stop_token& stop = {});
  Response stream(const ClientRequest& request, FieldLines more, const StreamLimits& limits,
                  const Receiver& receiver, const std::stop_token& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrigger::http
