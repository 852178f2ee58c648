#include "api/support.h"

#include <string>
#include <variant>

#include "api/exit_codes.h"
#include "api/names.h"

namespace outrigger::api {
namespace {

/// One thing that is valid and not built yet. Who builds it deletes the row.
struct Missing {
  const char* path;
  bool (*asked)(const TrainingJobSpec& spec, const Capabilities& can);
  const char* message;
};

bool has_partial_fc(const TrainingJobSpec& spec) {
  const auto* arcface = std::get_if<ArcFace>(&spec.training.loss);
  return arcface != nullptr && arcface->partial_fc.has_value();
}

constexpr Missing kMissing[] = {
    {"spec.suspend", [](const auto& spec, const auto& can) { return spec.suspend && !can.cluster; },
     "true: only a cluster keeps a suspended job; write false to run it here"},
    {"spec.activeDeadlineSeconds",
     [](const auto& spec, const auto& can) {
       return spec.active_deadline.has_value() && !can.cluster;
     },
     "only the operator of a cluster holds this deadline yet; leave it out to run the job here"},
    {"spec.managedBy",
     [](const auto& spec, const auto& can) {
       return spec.managed_by != kManagedByOperator && can.cluster;
     },
     "the operator leaves this job to whoever manages it, and MultiKueue knows no TrainingJobs "
     "yet; "
     "leave it out"},
    {"spec.data.train.urls",
     [](const auto& spec, const auto&) { return !spec.data.train.urls.empty(); },
     "reading shards from addresses is not built yet; put them into a folder and give path"},
    {"spec.data.validation.urls",
     [](const auto& spec, const auto&) {
       return spec.data.validation && !spec.data.validation->urls.empty();
     },
     "reading shards from addresses is not built yet; put them into a folder and give path"},
    {"spec.training.precision",
     [](const auto& spec, const auto& can) {
       return spec.training.precision == Precision::kFloat16 &&
              (!can.gpu || (can.cluster && spec.server.gpus == 0));
     },
     "Float16 needs a server on a GPU (spec.server.gpus); write BFloat16 or Float32"},
    {"spec.training.syncEverySteps",
     [](const auto& spec, const auto&) {
       return spec.training.sync_every_steps > 1 && spec.training.staleness > 0;
     },
     "more than 1 is not built yet beside staleness; write 1, or staleness: 0"},
    {"spec.training.loss.arcFace.partialFC",
     [](const auto& spec, const auto&) {
       return has_partial_fc(spec) && spec.training.precision == Precision::kFloat16;
     },
     "is not built yet for Float16; write precision: BFloat16"},
    {"spec.training.loss.arcFace.partialFC",
     [](const auto& spec, const auto&) {
       return has_partial_fc(spec) && spec.training.sync_every_steps > 1;
     },
     "needs ranks that step together; write syncEverySteps: 1"},
    {"spec.training.allReducePrecision",
     [](const auto& spec, const auto&) {
       return spec.training.all_reduce_precision == AllReducePrecision::kBFloat16 &&
              (rank_count(spec) == 1 || spec.training.sync_every_steps > 1);
     },
     "BFloat16 is for gradients that several ranks add in every step; write Float32"},
    {"spec.server.gpus",
     [](const auto& spec, const auto& can) { return spec.server.gpus > 0 && !can.gpu; },
     "no GPU can be used here; write 0 to train on the CPU"},
    {"spec.server.engine",
     [](const auto& spec, const auto& can) {
       return spec.server.engine == Engine::kExternal && !can.cluster;
     },
     "External: only a cluster runs an image of your own; write Builtin to run it here"},
    {"spec.model.embedding",
     [](const auto& spec, const auto&) { return !spec.model.name && spec.model.embedding; },
     "says nothing where the model is given as layers; leave it out"},
    {"spec.network.interface",
     [](const auto& spec, const auto&) { return spec.network.interface.has_value(); },
     "choosing an interface is not built yet; leave it out, links go as the system routes"},
    {"spec.network.encryption",
     [](const auto& spec, const auto&) { return spec.network.encryption == Encryption::kTls; },
     "TLS is not built yet; write None, in a network that you trust"},
    {"spec.schedulingPolicy.gang",
     [](const auto& spec, const auto& can) {
       return can.cluster && spec.scheduling_policy &&
              spec.scheduling_policy->gang == Gang::kVolcano;
     },
     "Volcano is not built yet; write None"},
};

// A pod takes joins and shows its status at ports of its own; its ranks do so at ports in a row.
void check_ports(const TrainingJobSpec& spec, std::vector<FieldError>& errors) {
  constexpr int kBehindLast = 65536;
  const int first = spec.network.port;
  const int ranks = ranks_per_pod(spec);
  if (first + ranks <= kBehindLast &&
      (first + ranks <= kStatusPort || kStatusPort + ranks <= first))
    return;
  const std::string status = std::to_string(kStatusPort);
  const std::string more = std::to_string(ranks - 1);
  std::string why = ": a pod shows its status at this port; take another";
  if (ranks > 1)
    why = ": the ranks of a pod take this port and " + more +
          " behind it, up to 65535, and none of " + status + " and " + more +
          " behind it, which show their status";
  errors.push_back({"spec.network.port", std::to_string(first) + why});
}

// Beside the field Kueue's label may say what that does: it keeps Kueue's integration of pods from
// queueing each of the job's by itself.
bool has_label_of_another_queue(const TrainingJob& job) {
  const auto label = job.metadata.labels.find(std::string(kQueueNameLabel));
  if (label == job.metadata.labels.end()) return false;
  const auto& policy = job.spec.scheduling_policy;
  return !policy || policy->queue != label->second;
}

// What the pods and labels of a cluster have no place for.
void check_on_cluster(const TrainingJob& job, std::vector<FieldError>& errors) {
  const auto& spec = job.spec;
  const std::string form = "a pod's folder is at a path that begins with /, like /";
  check_ports(spec, errors);
  if (!spec.output.path.starts_with('/')) errors.push_back({"spec.output.path", form + "output"});
  if (spec.checkpoint.path && !spec.checkpoint.path->starts_with('/'))
    errors.push_back({"spec.checkpoint.path", form + "checkpoints"});
  if (has_label_of_another_queue(job)) {
    errors.push_back({"metadata.labels",
                      "take " + std::string(kQueueNameLabel) +
                          " off and name the queue in spec.schedulingPolicy.queue; beside that the "
                          "label may name the same one"});
  }
}

}  // namespace

std::vector<FieldError> check_supported(const TrainingJob& job, const Capabilities& capabilities) {
  std::vector<FieldError> errors;
  for (const Missing& row : kMissing) {
    if (row.asked(job.spec, capabilities)) errors.push_back({row.path, row.message});
  }
  if (capabilities.cluster) check_on_cluster(job, errors);
  return errors;
}

void require_supported(const TrainingJob& job, const Capabilities& capabilities) {
  const auto errors = check_supported(job, capabilities);
  if (!errors.empty()) throw Failure(ExitCode::kNotSupported, to_string(errors));
}

}  // namespace outrigger::api
