#include "api/names.h"
#include "api/schema/fields.h"

namespace outrigger::api::schema {

void describe(Struct<Metadata>& s) {
  s.add("name", &Metadata::name, "Name of the job; names of pods and folders begin with it.")
      .required()
      .longest(48)
      .form(kJobNameForm);
  s.add("namespace", &Metadata::namespace_name, "Namespace of the object.")
      .absent("the client's")
      .longest(63)
      .form(kObjectNameForm);
  s.add("labels", &Metadata::labels, "Labels of the object.")
      .absent("none")
      .change(Change::kAlways)
      .may_be_empty()
      .longest(63);
  s.add("annotations", &Metadata::annotations, "Annotations of the object.")
      .absent("none")
      .change(Change::kAlways)
      .may_be_empty()
      .longest(262144);
  // What the API server writes; carried along, so that `kubectl get -o yaml` can be read back.
  s.add("uid", &Metadata::uid, "Set by the API server.").longest(128);
  s.add("resourceVersion", &Metadata::resource_version, "Set by the API server.").longest(128);
  s.add("generation", &Metadata::generation, "Set by the API server.").at_least(0);
  s.add("creationTimestamp", &Metadata::creation_time, "Set by the API server.");
  s.add("deletionTimestamp", &Metadata::deletion_time, "Set by the API server.");
  s.add("finalizers", &Metadata::finalizers, "Set by others.").most_items(64);
  s.add("ownerReferences", &Metadata::owner_references, "Set by others.").most_items(64);
  s.add("managedFields", &Metadata::managed_fields, "Set by the API server.").most_items(256);
}

void describe(Struct<TrainingJobSpec>& s) {
  s.add("suspend", &TrainingJobSpec::suspend,
        "No pods while it is true; servers write a checkpoint first.")
      .change(Change::kAlways);
  s.add("managedBy", &TrainingJobSpec::managed_by,
        "Who runs the job. With kueue.x-k8s.io/multikueue the operator leaves it alone, status and "
        "all; Kueue's own controllers do not know TrainingJobs yet.")
      .one_of({std::string(kManagedByOperator), std::string(kManagedByMultiKueue)});
  s.add("model", &TrainingJobSpec::model, "The network.").required();
  s.add("data", &TrainingJobSpec::data, "The images.").required();
  s.add("training", &TrainingJobSpec::training, "How it is trained.").required();
  s.add("split", &TrainingJobSpec::split, "What runs on the workers.").change(Change::kAlways);
  s.add("server", &TrainingJobSpec::server, "The role that owns the model.")
      .change(Change::kWhileSuspended);
  s.add("workers", &TrainingJobSpec::workers,
        "The role that reads, decodes, augments and runs the first layers.")
      .change(Change::kAlways);
  s.add("network", &TrainingJobSpec::network, "How the processes reach each other.");
  s.add("output", &TrainingJobSpec::output, "Where results go.").required();
  s.add("checkpoint", &TrainingJobSpec::checkpoint, "Where and how often the state is kept.");
  s.add("failurePolicy", &TrainingJobSpec::failure_policy, "What follows a failure.");
  s.add("schedulingPolicy", &TrainingJobSpec::scheduling_policy, "How the pods are placed.")
      .absent("as the cluster does")
      .change(Change::kWhileSuspended);
  s.add("activeDeadlineSeconds", &TrainingJobSpec::active_deadline,
        "The job fails when it has run so long.")
      .absent("no deadline")
      .between(1, kMostSeconds)
      .change(Change::kAlways);
  s.add("startupDeadlineSeconds", &TrainingJobSpec::startup_deadline,
        "The job fails when no step is done by then; with engine External, when not all "
        "servers are ready by then. After a drain or a preemption it counts from when all servers "
        "have places again.")
      .between(1, kMostSeconds)
      .change(Change::kAlways);
  s.add(
       "progressDeadlineSeconds", &TrainingJobSpec::progress_deadline,
       "The server ends itself as hung when no step is done for so long, and a worker when a piece "
       "of work takes so long. An edit reaches servers at once, workers with the next attempt.")
      .between(1, kMostSeconds)
      .change(Change::kAlways);
  s.add("ttlSecondsAfterFinished", &TrainingJobSpec::ttl_after_finished,
        "The object is deleted so long after the end.")
      .absent("it is kept")
      .between(0, kMostSeconds)
      .change(Change::kEvenEnded);
  s.add("cleanPodPolicy", &TrainingJobSpec::clean_pod_policy, "Pods that are deleted at the end.")
      .change(Change::kEvenEnded);
}

void describe(Struct<TrainingJob>& s) {
  s.constant("apiVersion", std::string(kApiVersion), "Version of this API.");
  s.constant("kind", std::string(kKind), "Kind of the object.");
  s.add("metadata", &TrainingJob::metadata, "What Kubernetes keeps about the object.").required();
  s.add("spec", &TrainingJob::spec, "What is wanted.").required();
  s.add("status", &TrainingJob::status, "What was seen; written by the operator.")
      .absent("nothing seen yet")
      .change(Change::kAlways);
}

const Object& training_job() { return struct_of<TrainingJob>(); }

}  // namespace outrigger::api::schema
