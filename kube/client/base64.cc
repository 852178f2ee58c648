#include "kube/client/base64.h"

#include <algorithm>
#include <cstdint>

namespace outrigger::kube {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  size_t digits = 0;
  size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t value = kDigits.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    ++digits;
    if (digits % 4 != 1) bytes += static_cast<char>(bits >> (6 - 2 * ((digits - 1) % 4)));
  }
  if (digits % 4 == 1 || padding > 2 || (digits + padding) % 4 != 0) return std::nullopt;
  return bytes;
}

std::optional<std::string> decode_base64url(std::string_view text) {
  if (text.find_first_of("+/=\r\n") != std::string_view::npos) return std::nullopt;
  std::string usual(text);
  std::replace(usual.begin(), usual.end(), '-', '+');
  std::replace(usual.begin(), usual.end(), '_', '/');
  usual.append((4 - usual.size() % 4) % 4, '=');
  return decode_base64(usual);
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = (bits << 8) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    const size_t digits = std::min<size_t>(bytes.size() - i, 3) + 1;
    for (size_t k = 0; k < 4; ++k) text += k < digits ? kDigits[(bits >> (18 - 6 * k)) & 63] : '=';
  }
  return text;
}

}  // namespace outrigger::kube
