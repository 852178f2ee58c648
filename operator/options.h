#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller {

/// What server containers get whose job has GPUs in several pods, and which so exchange gradients
/// over the network. Empty: nothing.
struct RdmaOptions {
  /// Counts of an RDMA device plugin's resources, for each pod or for each of its GPUs.
  std::map<std::string, int64_t> resources = {};
  std::map<std::string, int64_t> resources_per_gpu = {};
  /// Of the environment, such as NCCL_IB_HCA.
  std::map<std::string, std::string> variables = {};
  /// The capability IPC_LOCK, which containers have that run as root.
  bool lock_memory = false;
};

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
  RdmaOptions rdma = {};
  /// What tokens are made from; as random as a key, and the same for every replica of the operator.
  std::string token_key = {};
  /// How much servers and workers log.
  std::string process_log_level = "info";
};

}  // namespace outrigger::controller
