#include "api/field_error.h"

#include <algorithm>
#include <tuple>

namespace outrigger::api {

std::string to_string(const FieldError& error, std::string_view file) {
  std::string text(file);
  if (error.line > 0) {
    text += text.empty() ? "line " : ":";
    text += std::to_string(error.line) + (file.empty() ? ", column " : ":") +
            std::to_string(error.column);
  }
  if (!text.empty()) text += ": ";
  if (!error.path.empty()) text += error.path + ": ";
  return text + error.message;
}

std::string to_string(const std::vector<FieldError>& errors, std::string_view file) {
  std::vector<FieldError> sorted = errors;
  std::stable_sort(sorted.begin(), sorted.end(), [](const FieldError& a, const FieldError& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  std::string text;
  for (const FieldError& error : sorted)
    text += (text.empty() ? "" : "\n") + to_string(error, file);
  return text;
}

}  // namespace outrigger::api
