#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "api/field_error.h"
#include "api/parse.h"
#include "api/training_job.h"
#include "common/error.h"

namespace outrigger::cli {

/// What this build says of the network, its cut and how they are split. Another engine may know
/// other networks.
std::optional<api::FieldError> network_fault(const api::TrainingJob& job);

/// A job with the places of its fields.
class JobFile {
 public:
  JobFile(std::filesystem::path path, api::ParseResult read)
      : path_(std::move(path)), job_(std::move(read.job)), places_(std::move(read.places)) {}

  const api::TrainingJob& job() const { return job_; }

  /// Throws InvalidInput where no run takes the network or the split.
  void check_network() const;

  /// Returns doing(). What that finds to be wrong with one of the fields is told with file, line
  /// and column.
  template <typename Doing>
  auto with(const Doing& doing) const {
    try {
      return doing();
    } catch (const InvalidInput& error) {
      throw InvalidInput(located(error.what()));
    }
  }

 private:
  std::string located(const std::string& text) const;

  std::filesystem::path path_;
  api::TrainingJob job_;
  std::map<std::string, std::pair<int, int>> places_;
};

/// Throws as api::load_training_job does.
JobFile load_job_file(const std::filesystem::path& path);

}  // namespace outrigger::cli
