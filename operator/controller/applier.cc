#include "operator/controller/applier.h"

#include <utility>
#include <variant>

#include "api/names.h"
#include "common/log.h"
#include "kube/object/object.h"
#include "operator/controller/refusal.h"
#include "operator/controller/resources.h"
#include "operator/names.h"

namespace outrigger::controller {
namespace {

TimePoint now() { return SystemClock().now(); }

api::Time wall_seconds() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::optional<api::Role> role_of(const Json& object) {
  return parse_role(kube::label(object, std::string(api::kRoleLabel)).value_or(""));
}

int number_of(const Json& object) { return keep_child(object).number; }

// What a create has to answer: of a pod who it is, of all else nothing that was not sent.
kube::WriteOptions answer_to(ObjectKind kind) {
  if (kind != ObjectKind::kPod) return {.answer = kube::Form::kNothing};
  return {.answer = kube::Form::kMetadata, .kept = kReadOfPods};
}

// Of a pod just made only the metadata is answered; its node is as it was sent.
void add_node(Json& answer, const Json& sent) {
  const auto spec = sent.find("spec");
  if (spec != sent.end() && spec->contains("nodeName"))
    answer["spec"]["nodeName"] = (*spec)["nodeName"];
}

// The API server may wait for a webhook for ten seconds and more each time.
constexpr std::chrono::seconds kWebhookPatience{45};

// The server is overloaded or broken: what was asked for is not to blame.
bool only_time_mends(const kube::ApiError& error) {
  return error.code() >= 500 || error.too_many_requests() || error.code() == 401;
}

}  // namespace

Applier::Outcome Applier::apply(const Plan& plan) {
  attempt_ = plan.status.execution_attempts;
  for (const Action& action : plan.actions) {
    const Outcome outcome = std::visit([this](const auto& one) { return carry_out(one); }, action);
    if (outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

// A quota counts what is posted before it is found to be there, and takes it back minutes later.
// What is only tried it does not count; but webhooks may refuse to be tried, with 400.
kube::Result<Json> Applier::send(const Create& create) {
  const kube::Resource& resource = resource_of(create.kind);
  const std::string& ns = job_.metadata.namespace_name;
  kube::WriteOptions options = answer_to(create.kind);
  if (create.kind == ObjectKind::kSecret &&
      (create.likely_there || attempt_ > 1 || memory_.had_secret())) {
    options.dry_run = true;
    auto tried = client_.create(resource, ns, create.text, options);
    if (!tried && tried.error().code() != 400) return tried;
    options.dry_run = false;
  }
  return client_.create(resource, ns, create.text, options);
}

Applier::Outcome Applier::carry_out(const Create& create) {
  const bool pod = create.kind == ObjectKind::kPod;
  auto result = send(create);
  const std::string child = child_name(create.kind, kube::name_of(create.head));
  if (result) {
    Json answer = std::move(result).take();
    if (pod) add_node(answer, create.head);
    remember(create, child, pod ? answer : create.head);
    log::info("{}/{}: made {}", job_.metadata.namespace_name, job_.metadata.name, child);
    return Outcome::kDone;
  }
  const kube::ApiError& error = result.error();
  if (error.already_exists()) return look_at_existing(create, child);
  if (error.not_found() && create.kind != ObjectKind::kWorkload)
    return Outcome::kStale;  // the namespace is gone
  if (error.conflict() || (only_time_mends(error) && !is_of_webhook(error)))
    throw kube::ApiError(error);
  const RefusalCause cause = cause_of(error);
  if (create.kind == ObjectKind::kSecret && cause == RefusalCause::kQuota &&
      (create.likely_there || memory_.had_secret())) {
    // It is most likely there yet: a quota that is used up is no reason to make no pods.
    log::warning("{}/{}: {} is not made again: {}", job_.metadata.namespace_name,
                 job_.metadata.name, child, error.message());
    remember(create, child, create.head);
    return Outcome::kDone;
  }
  return refuse(create, child, cause, error.message(),
                is_of_webhook(error) ? kWebhookPatience : Refusal().patience);
}

// Our own create, whose answer was lost or which the caches do not show yet; or a collision.
Applier::Outcome Applier::look_at_existing(const Create& create, const std::string& child) {
  if (create.kind == ObjectKind::kSecret) {  // its name has our UID in it, and nobody reads it
    remember(create, child, create.head);
    return Outcome::kDone;
  }
  const auto existing = client_.get(resource_of(create.kind),
                                    {job_.metadata.namespace_name, kube::name_of(create.head)});
  if (!existing) {
    if (existing.error().not_found()) return Outcome::kStale;
    throw kube::ApiError(existing.error());
  }
  if (const auto cause = collision_with(*existing, job_.metadata)) {
    return refuse(create, child, *cause,
                  *cause == RefusalCause::kForeign
                      ? "an object of this name exists and is not this job's"
                      : "an object of this name belongs to a former job and is being deleted");
  }
  remember(create, child, *existing);
  if (create.kind != ObjectKind::kPod) return Outcome::kDone;
  memory_.found_pod(*existing, now());
  return Outcome::kStale;
}

void Applier::remember(const Create& create, const std::string& child, const Json& object) {
  if (create.kind == ObjectKind::kPod) {
    memory_.wrote_pod(object, now());
  } else if (create.kind == ObjectKind::kSecret) {
    memory_.wrote_secret(attempt_, now());
  } else {
    memory_.wrote_child(child, number_of(object), JobMemory::Write::kMade, now());
  }
  memory_.created(child);
}

Applier::Outcome Applier::refuse(const Create& create, const std::string& child, RefusalCause cause,
                                 const std::string& message, std::chrono::seconds patience) {
  log::warning("{}/{}: {} was refused: {}", job_.metadata.namespace_name, job_.metadata.name, child,
               message);
  memory_.refused({child, role_of(create.head), cause, message, wall_seconds(), patience});
  return Outcome::kRefused;
}

Applier::Outcome Applier::carry_out(const Remove& remove) {
  kube::DeleteOptions options;
  options.uid = remove.uid;
  options.grace_period = remove.grace;
  const auto result = client_.remove(resource_of(remove.kind),
                                     {job_.metadata.namespace_name, remove.name}, options);
  if (!result) {
    // It is gone, or another has its name by now: what was wanted.
    if (result.error().not_found() || result.error().conflict()) return Outcome::kDone;
    throw kube::ApiError(result.error());
  }
  log::info("{}/{}: deleted {}: {}", job_.metadata.namespace_name, job_.metadata.name,
            child_name(remove.kind, remove.name), remove.why);
  if (remove.kind == ObjectKind::kPod && kube::is_deleting(*result))
    memory_.wrote_pod(*result, now());
  if (remove.kind == ObjectKind::kConfigMap || remove.kind == ObjectKind::kWorkload)
    memory_.dropped(child_name(remove.kind, remove.name), remove.uid);
  return Outcome::kDone;
}

Applier::Outcome Applier::carry_out(const Patch& patch) {
  const auto result = client_.patch(
      resource_of(patch.kind), {job_.metadata.namespace_name, patch.name}, kube::PatchType::kMerge,
      patch.patch, {.answer = kube::Form::kMetadata}, patch.subresource);
  if (!result) {
    const kube::ApiError& error = result.error();
    if (error.not_found() || error.conflict()) return Outcome::kStale;
    if (patch.kind == ObjectKind::kService || only_time_mends(error)) throw kube::ApiError(error);
    // What Kueue does not take from us, or a role of an older chart does not let us write, must not
    // keep the job's pods from being looked after.
    log::warning("{}/{}: {}: {}", job_.metadata.namespace_name, job_.metadata.name,
                 child_name(patch.kind, patch.name), error.what());
    return Outcome::kDone;
  }
  if (patch.kind == ObjectKind::kWorkload) return Outcome::kDone;
  memory_.wrote_child(child_name(patch.kind, patch.name), number_of(*result),
                      JobMemory::Write::kChanged, now());
  return Outcome::kDone;
}

Applier::Outcome Applier::carry_out(const Scale& scale) {
  const auto& metadata = job_.metadata;
  const auto result = client_.scale(kTrainingJobs, {metadata.namespace_name, metadata.name},
                                    scale.replicas, metadata.resource_version);
  if (result) {
    log::info("{}/{}: set {} workers", metadata.namespace_name, metadata.name, scale.replicas);
    return Outcome::kStale;  // the job has changed: the rest is the next pass's
  }
  const kube::ApiError& error = result.error();
  if (error.not_found() || error.conflict()) return Outcome::kStale;
  if (only_time_mends(error)) throw kube::ApiError(error);
  // Without the right to scale, or past a bound that just moved, all else goes on.
  log::warning("{}/{}: setting {} workers was refused: {}", metadata.namespace_name, metadata.name,
               scale.replicas, error.message());
  return Outcome::kDone;
}

}  // namespace outrigger::controller
