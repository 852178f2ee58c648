#include "kube/client/service_account.h"

#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "kube/client/base64.h"
#include "kube/json_fields.h"
#include "kube/object/json.h"

namespace outrigger::kube {
namespace {

constexpr size_t kMostBytesOfAFile = size_t{1} << 16;

// The second of header.payload.signature; empty where there are not three.
std::string_view payload_of(std::string_view token) {
  const size_t first = token.find('.');
  if (first == std::string_view::npos) return {};
  const size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos) return {};
  return token.substr(first + 1, second - first - 1);
}

}  // namespace

std::optional<ServiceAccount> service_account_of(std::string_view token) {
  const auto payload = decode_base64url(payload_of(token));
  if (!payload) return std::nullopt;
  constexpr bool kThrows = false;
  const Json claims = Json::parse(*payload, nullptr, kThrows);
  const Json& claim = at(claims, "kubernetes.io");
  const Json& account = at(claim, "serviceaccount");
  ServiceAccount found{text_at(claim, "namespace"), text_at(account, "name"),
                       text_at(account, "uid")};
  if (found.ns.empty() || found.name.empty() || found.uid.empty()) return std::nullopt;
  return found;
}

std::optional<ServiceAccount> service_account_of(const Config& config) {
  if (config.token.file.empty()) return service_account_of(config.token.text);
  try {
    return service_account_of(read_file(config.token.file, kMostBytesOfAFile));
  } catch (const Error& error) {
    log::warning("whose token this is cannot be told: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace outrigger::kube
