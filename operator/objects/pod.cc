#include "operator/objects/pod.h"

#include <algorithm>
#include <utility>

#include "api/launch.h"
#include "api/names.h"
#include "kube/json_fields.h"
#include "operator/objects/merge.h"
#include "operator/objects/metadata.h"
#include "operator/objects/rdma.h"
#include "operator/objects/volumes.h"

namespace outrigger::controller {
namespace {

using std::chrono::seconds;

// A worker gives its leases back in moments; the server, which has a checkpoint to write, has
// spec.checkpoint.gracePeriodSeconds.
constexpr seconds kWorkerGrace{30};
// Leases make a second worker harmless, so a lost node is not waited for.
constexpr seconds kWorkerToleration{10};

const std::optional<Json>& template_of(const api::TrainingJob& job, api::Role role) {
  return role == api::Role::kServer ? job.spec.server.pod_template : job.spec.workers.pod_template;
}

Json template_part(const api::TrainingJob& job, api::Role role, const char* part) {
  const auto& pod_template = template_of(job, role);
  if (!pod_template || !pod_template->contains(part) || !(*pod_template)[part].is_object())
    return Json::object();
  return (*pod_template)[part];
}

bool is_external(const api::TrainingJob& job, const PodOrder& order) {
  return order.place.role == api::Role::kServer && job.spec.server.engine == api::Engine::kExternal;
}

// Where workers find that rank: those of one pod take joins at ports in a row.
std::string join_address(const api::TrainingJob& job, int rank) {
  const int of_pod = api::ranks_per_pod(job.spec);
  return server_address(job.metadata.name, job.metadata.namespace_name, rank / of_pod) + ":" +
         std::to_string(job.spec.network.port + rank % of_pod);
}

api::Launch launch_of(const api::TrainingJob& job, const PodOrder& order, const Options& options) {
  api::Launch launch;
  launch.role = order.place.role;
  launch.token_file = api::kJoinTokenPath;
  launch.termination_file = api::kTerminationLogPath;
  launch.log_level = options.process_log_level;
  if (order.place.role == api::Role::kWorker) {
    launch.index = order.place.index;
    const int of_pod = api::ranks_per_pod(job.spec);
    launch.server = join_address(job, order.place.index % (job.spec.server.replicas * of_pod));
    return launch;
  }
  launch.job_file = api::kJobFilePath;
  launch.control_token_file = api::kControlTokenPath;
  launch.ranks = api::ranks_per_pod(job.spec);
  launch.rank = order.place.index * launch.ranks;
  launch.replicas = api::rank_count(job.spec);
  if (launch.replicas > 1) launch.rendezvous = join_address(job, 0);
  launch.attempt = fencing_attempt(job, order.attempt);
  launch.resume = true;
  return launch;
}

// A program of the user's is told all in variables: its command line is its own.
void tell_environment(Json& container, const api::TrainingJob& job, const PodOrder& order,
                      const Options& options) {
  api::Launch launch = launch_of(job, order, options);
  launch.listen = "0.0.0.0";  // what every program can bind to; ours take IPv6 as well
  launch.replicas = job.spec.server.replicas;
  launch.output = job.spec.output.path;
  launch.checkpoint = job.spec.checkpoint.path.value_or(job.spec.output.path);
  auto variables = api::launch_environment(launch);
  variables[std::string(api::kServerVariable)] = join_address(job, order.place.index);
  Json& list = list_at(container, "env");
  for (const auto& [name, value] : variables) add_named(list, {{"name", name}, {"value", value}});
}

void tell_arguments(Json& container, const api::TrainingJob& job, const PodOrder& order,
                    const Options& options) {
  Json args = api::launch_arguments(launch_of(job, order, options));
  if (container.contains("args") && container["args"].is_array())
    args.insert(args.end(), container["args"].begin(), container["args"].end());
  container["args"] = std::move(args);
}

// A probe has one handler: one that asks in another way is the template's own.
void add_probe(Json& container) {
  const Json& given = kube::at(container, "readinessProbe");
  for (const char* handler : {"exec", "tcpSocket", "grpc"}) {
    if (given.contains(handler)) return;
  }
  fill(container, {{"readinessProbe",
                    {{"httpGet", {{"path", api::kReadyPath}, {"port", api::kStatusPort}}},
                     {"periodSeconds", 5},
                     {"timeoutSeconds", 2}}}});
}

Json take_container(Json& spec, const std::string& name) {
  Json& containers = list_at(spec, "containers");
  const Json* given = find_named(containers, name);
  Json container = given == nullptr ? Json{{"name", name}} : *given;
  if (given != nullptr) containers.erase(static_cast<size_t>(given - &containers[0]));
  return container;
}

void add_port(Json& container, const std::string& name, int port) {
  Json& ports = list_at(container, "ports");
  const bool there = std::any_of(ports.begin(), ports.end(), [&](const Json& one) {
    return kube::text_at(one, "name") == name || kube::at(one, "containerPort") == port;
  });
  if (!there) ports.push_back({{"name", name}, {"containerPort", port}, {"protocol", "TCP"}});
}

// With these a container may always do so, and `false` beside them is not valid
// (kubernetes.io/docs/tasks/configure-pod-container/security-context).
bool may_escalate_privileges(const Json& container) {
  const Json& given = kube::at(container, "securityContext");
  if (kube::at(given, "privileged") == true) return true;
  const Json& added = kube::at(kube::at(given, "capabilities"), "add");
  return std::any_of(added.begin(), added.end(),
                     [](const Json& one) { return one == "SYS_ADMIN" || one == "CAP_SYS_ADMIN"; });
}

void secure(Json& container) {
  Json security{{"readOnlyRootFilesystem", true},
                {"capabilities", {{"drop", Json::array({"ALL"})}}}};
  if (!may_escalate_privileges(container)) security["allowPrivilegeEscalation"] = false;
  fill(container, {{"securityContext", std::move(security)}});
}

void complete_container(Json& container, const api::TrainingJob& job, const PodOrder& order,
                        const Options& options) {
  const bool server = order.place.role == api::Role::kServer;
  container["image"] = order.image;
  if (is_external(job, order)) {
    tell_environment(container, job, order, options);
  } else {
    tell_arguments(container, job, order, options);
    add_probe(container);
  }
  if (server) add_port(container, "join", job.spec.network.port);
  add_port(container, "status", api::kStatusPort);
  for (int i = 1; server && i < api::ranks_per_pod(job.spec); ++i) {
    add_port(container, "join-" + std::to_string(i), job.spec.network.port + i);
    add_port(container, "status-" + std::to_string(i), api::kStatusPort + i);
  }
  fill(container, {{"terminationMessagePath", api::kTerminationLogPath},
                   {"terminationMessagePolicy", "FallbackToLogsOnError"}});
  secure(container);
  if (server && job.spec.server.gpus > 0) {
    Json& limits = object_at(object_at(container, "resources"), "limits");
    limits[job.spec.server.gpu_resource_name] = std::to_string(job.spec.server.gpus);
    add_rdma(container, job, options.rdma);
  }
}

void tolerate_lost_nodes(Json& spec) {
  Json& tolerations = list_at(spec, "tolerations");
  for (const char* key : {"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"}) {
    const bool there = std::any_of(tolerations.begin(), tolerations.end(), [&](const Json& one) {
      return kube::text_at(one, "key") == key;
    });
    if (there) continue;
    tolerations.push_back({{"key", key},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", kWorkerToleration.count()}});
  }
}

// All pods are where the servers are, which go together: workers that are left somewhere draw a
// server that begins again there, and keep it from no other place. Even the first server is placed:
// it is one of those that it looks for.
void stay_together(Json& spec, const api::TrainingJob& job, const PodOrder& order) {
  const std::string& key = *job.spec.scheduling_policy->topology_key;
  const auto term = [&](const Json& labels) {
    return Json{{"labelSelector", {{"matchLabels", labels}}}, {"topologyKey", key}};
  };
  Json& affinity = object_at(object_at(spec, "affinity"), "podAffinity");
  list_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
      .push_back(term(pod_selector(job, api::Role::kServer)));
  if (order.place.role == api::Role::kWorker) return;
  constexpr int kHeaviest = 100;
  list_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
      .push_back({{"weight", kHeaviest}, {"podAffinityTerm", term(pod_selector(job))}});
}

void follow_scheduling_policy(Json& spec, const api::TrainingJob& job, const PodOrder& order) {
  const auto& policy = job.spec.scheduling_policy;
  if (!policy) return;
  if (policy->priority_class_name)
    fill(spec, {{"priorityClassName", *policy->priority_class_name}});
  if (policy->topology_key) stay_together(spec, job, order);
}

// Our images are built for it alone; whoever has others says where they run.
void stay_on_our_architecture(Json& spec, const api::TrainingJob& job, const PodOrder& order) {
  if (is_external(job, order)) return;
  fill(spec, {{"nodeSelector", {{"kubernetes.io/arch", "amd64"}}}});
}

void complete_spec(Json& spec, const api::TrainingJob& job, const PodOrder& order,
                   const Options& options) {
  spec["restartPolicy"] = "Never";
  Json security{{"runAsNonRoot", true}, {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  Json defaults{{"automountServiceAccountToken", false}, {"enableServiceLinks", false}};
  if (order.place.role == api::Role::kServer) {
    spec["hostname"] = server_host(job.metadata.name, order.place.index);
    spec["subdomain"] = service_name(job.metadata.name);
    spec["terminationGracePeriodSeconds"] = job.spec.checkpoint.grace_period.count();
    if (options.fs_group) {
      security["fsGroup"] = *options.fs_group;
      security["fsGroupChangePolicy"] = "OnRootMismatch";
    }
  } else {
    defaults["terminationGracePeriodSeconds"] = kWorkerGrace.count();
    tolerate_lost_nodes(spec);
  }
  defaults["securityContext"] = std::move(security);
  fill(spec, defaults);
  stay_on_our_architecture(spec, job, order);
  follow_scheduling_policy(spec, job, order);
  for (const std::string& secret : options.image_pull_secrets)
    add_named(list_at(spec, "imagePullSecrets"), {{"name", secret}});
}

Json complete_metadata(const api::TrainingJob& job, const PodOrder& order) {
  const api::Role role = order.place.role;
  Json metadata = child_metadata(job, pod_name(job.metadata.name, order.place), role);
  metadata["labels"][std::string(api::kIndexLabel)] = std::to_string(order.place.index);
  metadata["labels"][std::string(api::kAttemptLabel)] = std::to_string(order.attempt);
  metadata["annotations"] = {{api::kDefaultContainerAnnotation, role_name(role)}};
  if (role == api::Role::kServer) {
    metadata["annotations"][std::string(api::kSafeToEvictAnnotation)] = "false";
    metadata["annotations"][std::string(kDoNotDisruptAnnotation)] = "true";
  }
  if (order.failures > 0)
    metadata["annotations"][std::string(kFailuresAnnotation)] = std::to_string(order.failures);
  const Json given = template_part(job, role, "metadata");
  for (const char* part : {"labels", "annotations"}) {
    if (given.contains(part) && given[part].is_object()) fill(metadata[part], given[part]);
  }
  return metadata;
}

}  // namespace

Json build_pod(const api::TrainingJob& job, const PodOrder& order, const Options& options) {
  const api::Role role = order.place.role;
  Json spec = template_part(job, role, "spec");
  Json container = take_container(spec, std::string(role_name(role)));
  complete_container(container, job, order, options);
  complete_spec(spec, job, order, options);
  add_volumes(spec, container, job, order);
  Json& containers = list_at(spec, "containers");
  containers.insert(containers.begin(), std::move(container));
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", complete_metadata(job, order)},
          {"spec", std::move(spec)}};
}

bool outlives_server_pod(const api::TrainingJob& job, const std::string& path) {
  Json spec = template_part(job, api::Role::kServer, "spec");
  Json container = take_container(spec, std::string(role_name(api::Role::kServer)));
  return outlives_pod(job, std::move(spec), std::move(container), path);
}

std::string wanted_image(const api::TrainingJob& job, api::Role role, const Options& options) {
  const Json spec = template_part(job, role, "spec");
  if (spec.contains("containers")) {
    const Json* container = find_named(spec["containers"], std::string(role_name(role)));
    if (container != nullptr && container->contains("image") && (*container)["image"].is_string())
      return (*container)["image"].get<std::string>();
  }
  return role == api::Role::kServer ? options.server_image : options.worker_image;
}

int64_t fencing_attempt(const api::TrainingJob& job, int attempt) {
  const auto made = job.metadata.creation_time;
  return (made ? made->time_since_epoch().count() : 0) + attempt;
}

}  // namespace outrigger::controller
