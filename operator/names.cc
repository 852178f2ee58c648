#include "operator/names.h"

#include <charconv>

#include "api/names.h"

namespace outrigger::controller {

std::string_view role_name(api::Role role) {
  return role == api::Role::kServer ? api::kServerRole : api::kWorkerRole;
}

std::optional<api::Role> parse_role(std::string_view name) {
  if (name == api::kServerRole) return api::Role::kServer;
  if (name == api::kWorkerRole) return api::Role::kWorker;
  return std::nullopt;
}

std::string pod_name(const std::string& job, const PodPlace& place) {
  return job + "-" + std::string(role_name(place.role)) + "-" + std::to_string(place.index) + "-" +
         std::to_string(place.number);
}

std::optional<int> pod_number(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == name.npos) return std::nullopt;
  int number = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + dash + 1, end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

std::string service_name(const std::string& job) { return job + "-server"; }

std::string server_host(const std::string& job, int index) {
  return job + "-server-" + std::to_string(index);
}

std::string server_address(const std::string& job, const std::string& ns, int index) {
  return server_host(job, index) + "." + service_name(job) + "." + ns + ".svc";
}

std::string config_map_name(const std::string& job, int attempt) {
  return job + "-config-" + std::to_string(attempt);
}

std::string secret_name(const std::string& job, const std::string& uid) {
  return job + "-tokens-" + uid.substr(0, 8);
}

std::string network_policy_name(const std::string& job) { return job; }

std::string role_selector(const std::string& job, api::Role role) {
  return std::string(api::kJobNameLabel) + "=" + job + "," + std::string(api::kRoleLabel) + "=" +
         std::string(role_name(role));
}

}  // namespace outrigger::controller
