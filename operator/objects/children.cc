#include "operator/objects/children.h"

#include <span>
#include <string>

#include "api/names.h"
#include "api/write.h"
#include "api/yaml_text.h"
#include "common/hash.h"
#include "operator/names.h"
#include "operator/objects/metadata.h"

namespace outrigger::controller {
namespace {

Json server_selector(const api::TrainingJob& job, int attempt) {
  Json selector = pod_selector(job, api::Role::kServer);
  selector[std::string(api::kAttemptLabel)] = std::to_string(attempt);
  return selector;
}

}  // namespace

Json build_service(const api::TrainingJob& job, int attempt) {
  Json metadata = child_metadata(job, service_name(job.metadata.name));
  metadata["labels"][std::string(api::kAttemptLabel)] = std::to_string(attempt);
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", server_selector(job, attempt)},
            {"ports", Json::array({{{"name", "join"}, {"port", job.spec.network.port}},
                                   {{"name", "status"}, {"port", api::kStatusPort}}})}}}};
}

Json service_patch(const api::TrainingJob& job, int attempt) {
  return {{"metadata", {{"labels", {{api::kAttemptLabel, std::to_string(attempt)}}}}},
          {"spec", {{"selector", server_selector(job, attempt)}}}};
}

api::TrainingJob told_job(const api::TrainingJob& job) {
  api::TrainingJob told;
  told.metadata.name = job.metadata.name;
  told.metadata.namespace_name = job.metadata.namespace_name;
  told.metadata.generation = job.metadata.generation;  // a server tells by it what it knows
  told.spec = job.spec;
  told.spec.server.pod_template.reset();
  told.spec.server.engine = api::Engine::kBuiltin;  // whoever reads this is the server
  told.spec.workers.pod_template.reset();
  told.spec.active_deadline.reset();
  told.spec.suspend = false;
  return told;
}

namespace {

// Our server may be of an older version, whose image the run keeps, and refuses what it does not
// know. An image of a user's does not know our defaults.
std::string job_file(const api::TrainingJob& job) {
  const api::TrainingJob told = told_job(job);
  const bool ours = job.spec.server.engine == api::Engine::kBuiltin;
  return api::to_yaml_text(ours ? api::to_short_json(told) : api::to_json(told));
}

}  // namespace

Json build_config_map(const api::TrainingJob& job, int attempt,
                      const std::optional<std::string>& handed_on) {
  Json metadata = child_metadata(job, config_map_name(job.metadata.name, attempt));
  metadata["labels"][std::string(api::kAttemptLabel)] = std::to_string(attempt);
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", std::move(metadata)},
          {"immutable", true},
          {"data", {{std::string(api::kJobFileName), handed_on ? *handed_on : job_file(job)}}}};
}

std::string token(const Options& options, const std::string& job_uid, const std::string& purpose) {
  const std::string text = job_uid + "/" + purpose;
  return to_hex(hmac_sha256(options.token_key, std::as_bytes(std::span(text))));
}

Json build_secret(const api::TrainingJob& job, const Options& options) {
  const std::string& uid = job.metadata.uid;
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", child_metadata(job, secret_name(job.metadata.name, uid))},
          {"immutable", true},
          {"type", "Opaque"},
          {"stringData",
           {{"join-token", token(options, uid, "join")},
            {"control-token", token(options, uid, "control")}}}};
}

namespace {

Json ingress_of(const api::TrainingJob& job) {
  const Json own{{"podSelector", {{"matchLabels", pod_selector(job)}}}};
  Json ingress = Json::array();
  ingress.push_back(
      {{"from", Json::array({own})}, {"ports", Json::array({{{"protocol", "TCP"}}})}});
  // Each by itself: network plugins that know no endPort pass over it, or over the whole policy.
  Json status = Json::array();
  for (int rank = 0; rank < api::ranks_per_pod(job.spec); ++rank)
    status.push_back({{"protocol", "TCP"}, {"port", api::kStatusPort + rank}});
  ingress.push_back({{"ports", std::move(status)}});
  return ingress;
}

}  // namespace

Json build_network_policy(const api::TrainingJob& job) {
  Json policy{{"apiVersion", "networking.k8s.io/v1"},
              {"kind", "NetworkPolicy"},
              {"metadata", child_metadata(job, network_policy_name(job.metadata.name))},
              {"spec",
               {{"podSelector", {{"matchLabels", pod_selector(job)}}},
                {"policyTypes", Json::array({"Ingress"})}}}};
  policy.merge_patch(network_policy_patch(job));
  return policy;
}

Json network_policy_patch(const api::TrainingJob& job) {
  return {{"metadata", {{"labels", {{kRanksLabel, std::to_string(api::ranks_per_pod(job.spec))}}}}},
          {"spec", {{"ingress", ingress_of(job)}}}};
}

}  // namespace outrigger::controller
