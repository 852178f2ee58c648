#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/error.h"
#include "http/message.h"
#include "kube/object/json.h"

namespace outrigger::kube {

/// What the API server answered instead of what was asked for (metav1.Status).
class ApiError : public Error {
 public:
  struct Parts {
    int code = 0;            // HTTP's, or that of an ERROR event
    std::string reason;      // "NotFound", "AlreadyExists", "Conflict", "Invalid", …
    std::string message;     // for people; the server's own words
    Json details = nullptr;  // kind, name, causes; null if none
    std::optional<std::chrono::seconds> retry_after = std::nullopt;
  };
  /// `what` is what was tried, on what.
  ApiError(const std::string& what, Parts parts);

  /// From an answer that is no success; one that carries no Status (a proxy's page) is told by its
  /// code and the beginning of its body.
  static ApiError from(const std::string& what, const http::Response& response);
  /// From a Status object.
  static ApiError from(const std::string& what, const Json& status);

  int code() const { return parts_.code; }
  const std::string& reason() const { return parts_.reason; }
  const std::string& message() const { return parts_.message; }
  const Json& details() const { return parts_.details; }
  std::optional<std::chrono::seconds> retry_after() const { return parts_.retry_after; }

  bool not_found() const { return parts_.code == 404; }
  /// A create met an object of that name; every other 409 is a conflict.
  bool already_exists() const { return parts_.reason == "AlreadyExists"; }
  bool conflict() const { return parts_.code == 409 && !already_exists(); }
  /// The resource version or the continue token is too old: list again.
  bool expired() const { return parts_.code == 410; }
  bool invalid() const { return parts_.code == 422; }
  bool forbidden() const { return parts_.code == 403; }
  bool too_many_requests() const { return parts_.code == 429; }

 private:
  Parts parts_;
};

/// A value, or the API server's refusal.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: as std::optional converts
  Result(ApiError error) : value_(std::move(error)) {}  // NOLINT

  explicit operator bool() const { return value_.index() == 0; }
  const T& operator*() const& { return std::get<0>(value_); }
  const T* operator->() const { return &std::get<0>(value_); }
  const ApiError& error() const { return std::get<1>(value_); }

  /// The value; throws the refusal where the caller has no use for it.
  T take() && {
    if (value_.index() == 1) throw std::get<1>(std::move(value_));
    return std::get<0>(std::move(value_));
  }

 private:
  std::variant<T, ApiError> value_;
};

}  // namespace outrigger::kube
