#include "kube/client/config.h"

#include <cstdlib>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::kube {
namespace {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

std::optional<Config> in_cluster_config(const PodEnvironment& environment) {
  const std::string host =
      environment.host.empty() ? environment_variable("KUBERNETES_SERVICE_HOST") : environment.host;
  const std::string port =
      environment.port.empty() ? environment_variable("KUBERNETES_SERVICE_PORT") : environment.port;
  const auto token = environment.folder / "token";
  if (host.empty() || port.empty() || !std::filesystem::exists(token)) return std::nullopt;
  Config config;
  const bool ipv6 = host.find(':') != std::string::npos;
  config.server = "https://" + (ipv6 ? "[" + host + "]" : host) + ":" + port;
  config.token.file = token;
  config.authorities.file = environment.folder / "ca.crt";
  if (const auto ns = environment.folder / "namespace"; std::filesystem::exists(ns))
    config.ns = trimmed(read_file(ns, 1024));
  return config;
}

Config find_config(const std::filesystem::path& path, const std::string& context) {
  if (!path.empty()) return read_kubeconfig(path, context);
  if (const std::string named = environment_variable("KUBECONFIG"); !named.empty()) {
    if (named.find(':') != std::string::npos)
      throw InvalidInput("KUBECONFIG='" + named + "': several files are not merged; name one");
    return read_kubeconfig(named, context);
  }
  if (context.empty()) {
    if (auto config = in_cluster_config()) return *config;
  }
  const std::filesystem::path home = environment_variable("HOME");
  if (const auto usual = home / ".kube" / "config"; std::filesystem::exists(usual))
    return read_kubeconfig(usual, context);
  throw InvalidInput(
      "no cluster: not in a pod, KUBECONFIG is not set, and there is no ~/.kube/config");
}

}  // namespace outrigger::kube
