#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace outrigger::kube {

/// A text given in place, or a file that is read again when it changes. Both empty: none.
struct TextOrFile {
  std::string text = {};
  std::filesystem::path file = {};

  bool empty() const { return text.empty() && file.empty(); }
  bool operator==(const TextOrFile&) const = default;
};

/// How to reach an API server and who we are there.
struct Config {
  /// "https://host:port", with the path under which a proxy shows the server, if there is one.
  std::string server;
  /// What a context or the pod says; what has no namespace of its own goes there.
  std::string ns = "default";
  /// PEM.
  TextOrFile authorities = {};
  TextOrFile certificate = {};
  TextOrFile key = {};
  /// A bearer token.
  TextOrFile token = {};
  /// False only where a kubeconfig says insecure-skip-tls-verify.
  bool verify = true;
};

/// Where a pod finds its service account; tests say something else.
struct PodEnvironment {
  std::filesystem::path folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string host = {};  // empty: KUBERNETES_SERVICE_HOST
  std::string port = {};  // empty: KUBERNETES_SERVICE_PORT
};

/// As the pod's service account; nothing if this is no pod. Files are named, not read, but for the
/// namespace.
std::optional<Config> in_cluster_config(const PodEnvironment& environment = {});

/// A context of a kubeconfig file; the current one if `context` is empty. Relative paths in it are
/// relative to it. Warns where it switches verification off. Throws InvalidInput that names file
/// and field for what is missing, malformed, or not supported: exec and auth-provider plugins,
/// user names with passwords, impersonation, proxy-url and tls-server-name.
Config read_kubeconfig(const std::filesystem::path& path, const std::string& context = "");

/// The first that there is: `path` (a flag), the file in $KUBECONFIG, this pod's service account,
/// ~/.kube/config. InvalidInput if there is none.
Config find_config(const std::filesystem::path& path = {}, const std::string& context = "");

}  // namespace outrigger::kube
