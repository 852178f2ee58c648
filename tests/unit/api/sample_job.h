#pragma once

#include <string>

#include "api/parse.h"
#include "common/error.h"

namespace outrigger::api {

/// The shortest valid job, with room for more lines: `more` stands in spec (indented by two).
inline std::string sample_text(const std::string& more = "") {
  return "apiVersion: outrigger.dev/v1alpha1\n"
         "kind: TrainingJob\n"
         "metadata: {name: faces}\n"
         "spec:\n"
         "  model: {name: lenet5}\n"
         "  data:\n"
         "    train: {path: faces}\n"
         "    image: {height: 28, width: 28}\n"
         "  training:\n"
         "    epochs: 3\n"
         "    batchSize: 64\n"
         "    schedule: {constant: {base: 0.1}}\n"
         "  output: {path: runs}\n" +
         more;
}

/// The sample with one piece of its text put in place of another.
inline std::string sample_with(const std::string& old_text, const std::string& new_text) {
  std::string text = sample_text();
  const size_t at = text.find(old_text);
  ensure(at != std::string::npos, "the sample job has the text that a test replaces");
  return text.replace(at, old_text.size(), new_text);
}

inline TrainingJob sample_job(const std::string& more = "") {
  const ParseResult result = resolve_training_job(sample_text(more));
  ensure(result.errors.empty(), to_string(result.errors).c_str());
  return result.job;
}

/// Every error, one a line.
inline std::string errors_of(const std::string& text) {
  return to_string(resolve_training_job(text).errors, "job.yaml");
}

}  // namespace outrigger::api
