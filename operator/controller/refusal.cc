#include "operator/controller/refusal.h"

#include "api/names.h"
#include "kube/object/object.h"

namespace outrigger::controller {
namespace {

bool has_cause(const kube::ApiError& error, const char* reason) {
  if (!error.details().is_object()) return false;
  const auto causes = error.details().find("causes");
  if (causes == error.details().end()) return false;
  for (const Json& cause : *causes) {
    if (cause.is_object() && cause.value("reason", "") == reason) return true;
  }
  return false;
}

bool says(const kube::ApiError& error, const char* words) {
  return error.message().find(words) != std::string::npos;
}

// As the API server begins what an admission webhook denies.
bool is_denied_by_webhook(const kube::ApiError& error) {
  return says(error, "admission webhook \"");
}

}  // namespace

RefusalCause cause_of(const kube::ApiError& error) {
  // Its code is the webhook's own, 400 where it gives none, and so are its grounds, which may pass.
  if (is_denied_by_webhook(error)) return RefusalCause::kForbidden;
  if (error.invalid() || error.code() == 400) return RefusalCause::kInvalid;
  if (!error.forbidden()) return RefusalCause::kOther;
  if (has_cause(error, "NamespaceTerminating") || says(error, "is being terminated"))
    return RefusalCause::kNamespaceEnds;
  // The admission plugins say which they are in words alone.
  if (says(error, "violates PodSecurity")) return RefusalCause::kPodSecurity;
  if (says(error, "exceeded quota") || says(error, "failed quota")) return RefusalCause::kQuota;
  return RefusalCause::kForbidden;
}

bool is_of_webhook(const kube::ApiError& error) {
  return error.code() >= 500 &&
         (says(error, "failed calling webhook") || is_denied_by_webhook(error));
}

std::optional<RefusalCause> collision_with(const Json& object, const api::Metadata& job) {
  const auto owner = kube::controller_of(object);
  // Another group may have a kind of that name; a version of ours to come is ours.
  if (!owner || !owner->api_version.starts_with(std::string(api::kGroup) + "/") ||
      owner->kind != api::kKind || owner->name != job.name)
    return RefusalCause::kForeign;
  if (owner->uid != job.uid) return RefusalCause::kLeftover;
  return std::nullopt;
}

}  // namespace outrigger::controller
