#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outrigger::api {

/// One thing wrong with one field.
struct FieldError {
  std::string
      path;  // "spec.training.batchSize", "spec.data.augment[1].resize"; empty: the whole file
  std::string message;  // the value and what is allowed: "0 is too small; at least 1"
  int line = 0;         // 1-based; 0: not known (the job did not come from a text)
  int column = 0;       // 1-based, in characters
  bool operator==(const FieldError&) const = default;
};

/// "faces.yaml:12:5: spec.training.batchSize: 0 is too small; at least 1"; without what is not
/// known.
std::string to_string(const FieldError& error, std::string_view file = {});
/// One error a line, in the order of their places in the file.
std::string to_string(const std::vector<FieldError>& errors, std::string_view file = {});

}  // namespace outrigger::api
