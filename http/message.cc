#include "http/message.h"

#include <algorithm>
#include <cctype>

#include "common/error.h"

namespace outrigger::http {

void add_field(std::string& head, std::string_view name, std::string_view value) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(value, is_control))
    throw InvalidInput("header field " + std::string(name) +
                       ": its value holds a control character");
  head.append(name).append(": ").append(value).append("\r\n");
}

std::optional<std::string> find_header(const Headers& headers, std::string_view name) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const auto& [candidate, value] : headers) {
    if (std::equal(candidate.begin(), candidate.end(), name.begin(), name.end(), same))
      return value;
  }
  return std::nullopt;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~')) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace outrigger::http
