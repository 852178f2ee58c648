#include "api/schema/faults.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "api/schema/scalar.h"
#include "common/nearest.h"

namespace outrigger::api::schema {
namespace {

// Longer texts are not matched against a rule: std::regex recurses once a character.
constexpr size_t kLongestMatch = 512;

// Compiling a form costs far more than a match; each thread keeps its own.
const std::regex& compiled(const TextRule& rule) {
  thread_local std::map<const TextRule*, std::regex> forms;
  const auto [form, is_new] = forms.try_emplace(&rule);
  if (is_new) form->second.assign(rule.regex.begin(), rule.regex.end());
  return form->second;
}

bool too_small(double value, const Field& field) {
  return field.minimum && (field.above_minimum ? value <= *field.minimum : value < *field.minimum);
}

bool too_large(double value, const Field& field) {
  return field.maximum && (field.below_maximum ? value >= *field.maximum : value > *field.maximum);
}

std::string bound_message(const std::string& value, bool small, const Field& field) {
  const bool open = small ? field.above_minimum : field.below_maximum;
  const std::string bound = format_number(small ? *field.minimum : *field.maximum);
  const std::string_view word =
      small ? (open ? "more than " : "at least ") : (open ? "less than " : "at most ");
  return value + (small ? " is too small; " : " is too large; ") + std::string(word) + bound;
}

std::string choices(const std::vector<std::string>& values) {
  std::string result;
  for (const auto& value : values) result += (result.empty() ? "" : ", ") + value;
  return result;
}

std::optional<std::string> choice_fault(std::string_view value, const Field& field) {
  if (std::find(field.values.begin(), field.values.end(), value) != field.values.end())
    return std::nullopt;
  std::string message = in_quotes(value) + " is not allowed; one of " + choices(field.values);
  if (const auto meant = nearest(value, field.values)) message += " (did you mean " + *meant + "?)";
  return message;
}

}  // namespace

std::optional<std::string> number_fault(double value, const Field& field) {
  const std::string shown = format_number(value);
  if (!std::isfinite(value)) return shown + " is not allowed; a finite number is needed";
  if (too_small(value, field)) return bound_message(shown, true, field);
  if (too_large(value, field)) return bound_message(shown, false, field);
  return std::nullopt;
}

std::optional<std::string> integer_fault(int64_t value, const Field& field) {
  const std::string shown = std::to_string(value);
  if (too_small(static_cast<double>(value), field)) return bound_message(shown, true, field);
  if (too_large(static_cast<double>(value), field)) return bound_message(shown, false, field);
  return std::nullopt;
}

std::optional<std::string> text_fault(std::string_view value, const Field& field) {
  if (value.size() < field.least_text) return "an empty text is not allowed";
  if (value.size() > field.longest_text) {
    return std::to_string(value.size()) + " bytes of text are too long; at most " +
           std::to_string(field.longest_text);
  }
  if (!field.values.empty()) return choice_fault(value, field);
  if (field.text_rule == nullptr || value.empty()) return std::nullopt;
  if (value.size() <= kLongestMatch &&
      std::regex_match(value.begin(), value.end(), compiled(*field.text_rule)))
    return std::nullopt;
  return in_quotes(value) + " is not allowed; " + std::string(field.text_rule->meaning) +
         " is needed";
}

std::optional<std::string> count_fault(size_t items, const Field& field) {
  if (items <= field.most_items) return std::nullopt;
  return std::to_string(items) + " items are too many; at most " + std::to_string(field.most_items);
}

}  // namespace outrigger::api::schema
