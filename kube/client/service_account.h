#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/client/config.h"

namespace outrigger::kube {

/// Who a pod is to the API server.
struct ServiceAccount {
  std::string ns;
  std::string name;
  std::string uid;

  bool operator==(const ServiceAccount&) const = default;
};

/// Whose a bearer token is, as it says itself: a JWT (RFC 7519) with the private claim
/// kubernetes.io, as the API server issues for pods. Nothing where it is no such token. The
/// signature is not looked at, so ask this of one's own token only.
std::optional<ServiceAccount> service_account_of(std::string_view token);

/// The same of the config's token, which is read anew: a kubelet replaces it. Nothing where there
/// is none, or it cannot be read.
std::optional<ServiceAccount> service_account_of(const Config& config);

}  // namespace outrigger::kube
