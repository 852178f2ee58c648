#include "http/server_address.h"

#include <charconv>
#include <string_view>

#include "common/error.h"

namespace outrigger::http {
namespace {

constexpr uint16_t default_port(bool tls) { return tls ? 443 : 80; }

bool parse_port(std::string_view text, uint16_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::string ServerAddress::authority() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == default_port(tls) ? name : name + ":" + std::to_string(port);
}

ServerAddress parse_server_url(const std::string& url) {
  const InvalidInput refused("URL '" + url + "': wanted is http://host:port or https://host:port");
  std::string_view rest = url;
  ServerAddress address;
  address.tls = rest.starts_with("https://");
  if (!address.tls && !rest.starts_with("http://")) throw refused;
  rest.remove_prefix(address.tls ? 8 : 7);
  address.port = default_port(address.tls);
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos && rest.back() != ']') {
    if (!parse_port(rest.substr(colon + 1), address.port)) throw refused;
    rest = rest.substr(0, colon);
  }
  const bool bracketed = rest.starts_with('[') && rest.ends_with(']');
  if (bracketed) rest = rest.substr(1, rest.size() - 2);
  const std::string_view allowed =
      bracketed ? ":.0123456789abcdefABCDEF"
                : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (rest.empty() || rest.find_first_not_of(allowed) != std::string_view::npos) throw refused;
  address.host = rest;
  return address;
}

}  // namespace outrigger::http
