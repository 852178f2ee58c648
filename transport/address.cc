#include "transport/address.h"

#include <charconv>
#include <optional>

#include "common/error.h"

namespace outrigger::transport {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw InvalidInput(
      "\"" + std::string(text) +
      "\" is no address; allowed are host:port, 10.0.0.1:port and [::1]:port, port 1 to 65535");
}

}  // namespace

Address parse_address(std::string_view text, uint16_t default_port) {
  std::string_view host = text;
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) refuse(text);
    host = text.substr(1, end - 1);
    const auto rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') refuse(text);
    if (!rest.empty()) port = rest.substr(1);
  } else if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.find(':') != std::string_view::npos) refuse(text);
  }
  Address address{std::string(host), default_port};
  if (port) {
    const auto [end, failure] =
        std::from_chars(port->data(), port->data() + port->size(), address.port);
    if (failure != std::errc() || end != port->data() + port->size()) refuse(text);
  }
  if (address.host.empty() || address.port == 0) refuse(text);
  return address;
}

std::string to_string(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  const std::string host = brackets ? "[" + address.host + "]" : address.host;
  return host + ":" + std::to_string(address.port);
}

Address reached_here(const Address& listening) {
  const std::string& host = listening.host;
  const bool anywhere = host.empty() || host == "0.0.0.0" || host == "::";
  return {anywhere ? "127.0.0.1" : host, listening.port};
}

}  // namespace outrigger::transport
