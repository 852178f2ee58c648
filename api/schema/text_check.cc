#include "api/schema/text_check.h"

#include <array>
#include <cstdint>
#include <string>

namespace outrigger::api::schema {
namespace {

constexpr size_t kLongestValue = size_t{1} << 20;  // what etcd holds is not much more

// Length of the well-formed UTF-8 sequence at the start (RFC 3629, table in section 4); 0 where
// there is none.
size_t sequence_length(std::string_view rest) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(rest[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || rest.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_large = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

bool is_control(char c) {
  return (static_cast<uint8_t>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

std::string hex(char c) {
  constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  const auto byte = static_cast<uint8_t>(c);
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

}  // namespace

std::optional<FieldError> find_bad_text(std::string_view bytes) {
  if (bytes.size() > kLongestValue) {
    return FieldError{"", std::to_string(bytes.size()) + " bytes are too long; at most 1 MiB"};
  }
  FieldError error{"", "", 1, 1};
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = sequence_length(bytes.substr(i));
    if (length == 0) {
      error.message = "byte " + hex(bytes[i]) + " is not UTF-8, which a job file is written in";
      return error;
    }
    if (length == 1 && is_control(bytes[i])) {
      error.message = "control character " + hex(bytes[i]) + " in a text";
      return error;
    }
    const bool new_line = bytes[i] == '\n';
    error.line += new_line ? 1 : 0;
    error.column = new_line ? 1 : error.column + 1;
    i += length;
  }
  return std::nullopt;
}

}  // namespace outrigger::api::schema
