#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace outrigger::transport {

/// Where a server is reached: a name or number and a port.
struct Address {
  std::string host;
  uint16_t port = 0;
};

/// "host:port", "10.0.0.1:29400", "[::1]:29400"; the port may be left out where `default_port` is
/// not 0. Throws InvalidInput with the text and what is allowed.
Address parse_address(std::string_view text, uint16_t default_port = 0);

/// The reverse, with brackets around what has colons.
std::string to_string(const Address& address);

/// Where this machine's own processes reach what listens there; "", "0.0.0.0" and "::" are all of
/// its addresses.
Address reached_here(const Address& listening);

}  // namespace outrigger::transport
