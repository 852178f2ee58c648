#include "kube/client/api_error.h"

#include <charconv>

#include "kube/json_fields.h"

namespace outrigger::kube {
namespace {

std::optional<std::chrono::seconds> whole_seconds(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return std::chrono::seconds(value);
}

std::string describe(const std::string& what, const ApiError::Parts& parts) {
  std::string text = what + ": " + std::to_string(parts.code);
  if (!parts.reason.empty()) text += " " + parts.reason;
  if (!parts.message.empty()) text += ": " + parts.message;
  return text;
}

ApiError::Parts parts_of(const Json& status) {
  ApiError::Parts parts;
  if (!status.is_object()) return parts;
  if (const auto code = status.find("code"); code != status.end() && code->is_number_integer())
    parts.code = code->get<int>();
  parts.reason = text_at(status, "reason");
  parts.message = text_at(status, "message");
  const auto details = status.find("details");
  if (details == status.end() || !details->is_object()) return parts;
  parts.details = *details;
  const auto wait = details->find("retryAfterSeconds");
  if (wait != details->end() && wait->is_number_unsigned())
    parts.retry_after = std::chrono::seconds(wait->get<uint32_t>());
  return parts;
}

}  // namespace

ApiError::ApiError(const std::string& what, Parts parts)
    : Error(describe(what, parts)), parts_(std::move(parts)) {}

ApiError ApiError::from(const std::string& what, const Json& status) {
  return {what, parts_of(status)};
}

ApiError ApiError::from(const std::string& what, const http::Response& response) {
  const Json body = Json::parse(response.body, nullptr, false);
  Parts parts;
  if (body.is_object() && text_at(body, "kind") == "Status") {
    parts = parts_of(body);
  } else {
    parts.message = response.body.substr(0, 200);
  }
  parts.code = response.status;
  if (const auto wait = http::find_header(response.headers, "Retry-After")) {
    if (const auto seconds = whole_seconds(*wait)) parts.retry_after = seconds;
  }
  return {what, std::move(parts)};
}

}  // namespace outrigger::kube
