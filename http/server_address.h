#pragma once

#include <cstdint>
#include <string>

namespace outrigger::http {

/// Where a client connects to.
struct ServerAddress {
  bool tls = false;
  std::string host;  // without brackets
  uint16_t port = 80;

  /// "host", "host:port" where the port is not the scheme's own, "[::1]:8080": what the field Host
  /// says.
  std::string authority() const;
};

/// Throws InvalidInput unless `url` is scheme://host or scheme://host:port; an IPv6 host is in
/// brackets.
ServerAddress parse_server_url(const std::string& url);

}  // namespace outrigger::http
