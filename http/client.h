#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "http/message.h"

namespace outrigger::http {

struct ClientOptions {
  /// "http://host:port" or "https://host:port".
  std::string base_url;
  /// For connecting, for each read and write, and for the whole answer.
  std::chrono::milliseconds timeout{5000};
  /// A larger answer is an error.
  size_t max_body = size_t{1} << 20;
  /// PEM file of the authorities to trust; empty: the system's. Certificate and host name are
  /// always verified.
  std::string ca_file = {};
  /// Sent with every request (Authorization, say).
  Headers headers = {};
};

/// Asks one server. Connections are kept and used again. Thread-safe: concurrent requests use a
/// connection each.
class Client {
 public:
  /// Does not connect. Throws InvalidInput where the URL is none.
  explicit Client(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The server's answer, whatever its status. Throws IoError with method, URL and cause where
  /// there is none: not reached, certificate not trusted, time over, or body too large.
  Response get(const std::string& path);
  Response post(const std::string& path, const std::string& body,
                const std::string& content_type = "application/json");

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrigger::http
