#include "api/schema/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

namespace outrigger::api::schema {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// What follows a decimal point or the whole number: [0-9]* ([eE][-+]?[0-9]+)?
bool is_fraction_and_exponent(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return all_digits(text);
}

// Unsigned: [0-9]+(\.[0-9]*)?(e…)? or \.[0-9]+(e…)?, no superfluous leading zero.
bool is_decimal(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 1 && text[0] == '0') return false;
  const std::string_view rest = text.substr(digits);
  if (rest.empty()) return digits > 0;
  if (rest[0] != '.') return digits > 0 && is_fraction_and_exponent(rest);
  if (digits == 0 && (rest.size() < 2 || !is_digit(rest[1]))) return false;
  return is_fraction_and_exponent(rest.substr(1));
}

// Read as a number by some YAML 1.1 readers and as text, or as another number, by others.
bool is_number_to_some(std::string_view text) {
  if (text.empty() || !is_digit(text[0])) return false;
  if (text.size() > 2 && text[0] == '0' && std::string_view("xXoObB").find(text[1]) != text.npos) {
    return text.find_first_not_of("0123456789abcdefABCDEF_", 2) == text.npos;
  }
  if (text[0] == '0' && is_digit(text.size() > 1 ? text[1] : ' ')) {
    return text.find_first_not_of("0123456789_.eE+-") == text.npos;
  }
  return text.find('_') != text.npos && text.find_first_not_of("0123456789_.") == text.npos;
}

std::string_view without_sign(std::string_view text) {
  return !text.empty() && (text[0] == '-' || text[0] == '+') ? text.substr(1) : text;
}

}  // namespace

Look look_of(std::string_view plain) {
  constexpr std::array<std::string_view, 6> kYesOrNo{"yes", "no", "on", "off", "y", "n"};
  const std::string word = lower(plain);
  if (word.empty() || word == "~" || word == "null") return Look::kNull;
  if (plain == "true" || plain == "false") return Look::kBoolean;
  if (word == "true" || word == "false") return Look::kAmbiguous;
  if (std::find(kYesOrNo.begin(), kYesOrNo.end(), word) != kYesOrNo.end()) return Look::kAmbiguous;
  const std::string_view digits = without_sign(plain);
  if (word == ".nan" || lower(digits) == ".inf") return Look::kAmbiguous;
  if (is_decimal(digits)) return all_digits(digits) ? Look::kInteger : Look::kNumber;
  return is_number_to_some(digits) ? Look::kAmbiguous : Look::kText;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (look_of(text) != Look::kInteger) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  const Look look = look_of(text);
  if (look != Look::kInteger && look != Look::kNumber) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::string format_number(double value) {
  // As readers of whole numbers take them.
  constexpr double kEveryWhole = 9007199254740992;  // 2^53; not each is a double from there on
  const bool whole = std::abs(value) <= kEveryWhole && value == std::trunc(value);
  std::array<char, 32> text{};
  const auto [end, fault] =
      std::to_chars(text.data(), text.data() + text.size(), value,
                    whole ? std::chars_format::fixed : std::chars_format::general);
  return fault == std::errc{} ? std::string(text.data(), end) : std::to_string(value);
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string shown(text.substr(0, kLongest));
  if (text.size() > kLongest) {
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xC0) == 0x80)
      shown.pop_back();
    if (!shown.empty() && static_cast<unsigned char>(shown.back()) >= 0xC0) shown.pop_back();
    shown += "…";
  }
  return nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace outrigger::api::schema
