#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller {

/// What whoever installs the operator decides for all jobs.
struct Options {
  /// Images for containers that a job's template gives none.
  std::string server_image;
  std::string worker_image;
  /// Secrets that pods pull with, beside those of a template.
  std::vector<std::string> image_pull_secrets = {};
  /// Group that owns a server's volumes, so that a process that is not root can write to them;
  /// nothing where the cluster chooses it (OpenShift).
  std::optional<int64_t> fs_group = {};
  /// Whether the server image can use a GPU.
  bool gpu = false;
  /// What tokens are made from; as random as a key, and the same for every replica of the operator.
  std::string token_key = {};
  /// How much servers and workers log.
  std::string process_log_level = "info";
};

}  // namespace outrigger::controller
