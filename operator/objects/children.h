#pragma once

#include "api/training_job.h"
#include "operator/options.h"
#include "operator/plan.h"

/// What a job owns beside its pods.
namespace outrigger::controller {

/// Headless; names the servers of one attempt, also before they are ready: ranks meet first.
Json build_service(const api::TrainingJob& job, int attempt);
/// What makes an existing Service name the servers of another attempt.
Json service_patch(const api::TrainingJob& job, int attempt);

/// The job as its processes read it: without templates and without what only the operator follows.
api::TrainingJob told_job(const api::TrainingJob& job);
/// That, for the processes of one attempt; or the file that is `handed_on` from the one before.
Json build_config_map(const api::TrainingJob& job, int attempt,
                      const std::optional<std::string>& handed_on = std::nullopt);

/// The tokens, each the HMAC of the operator's key over the job's UID and the token's purpose: they
/// can be made again, so nobody has to read them back.
Json build_secret(const api::TrainingJob& job, const Options& options);
std::string token(const Options& options, const std::string& job_uid, const std::string& purpose);

/// Lets in the job's own pods on every TCP port, and anyone on the status port; for probes and
/// Prometheus. What pods may reach is not limited.
Json build_network_policy(const api::TrainingJob& job);
/// What makes an existing one that for servers of another number of ranks.
Json network_policy_patch(const api::TrainingJob& job);

}  // namespace outrigger::controller
