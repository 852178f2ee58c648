#include "api/schema/fields.h"

namespace outrigger::api::schema {

void describe(Struct<OutputSpec>& s) {
  s.add("path", &OutputSpec::path,
        "Folder for the run's files; they go into a folder of the job's name in it.")
      .required();
  s.add("volumeClaimName", &OutputSpec::volume_claim_name,
        "PersistentVolumeClaim that is mounted at path.")
      .absent("no volume")
      .longest(253)
      .form(kObjectNameForm);
}

void describe(Struct<CheckpointSpec>& s) {
  s.add("path", &CheckpointSpec::path,
        "Folder for checkpoints; they go into a folder of the job's name in it.")
      .absent("output.path");
  s.add("volumeClaimName", &CheckpointSpec::volume_claim_name,
        "PersistentVolumeClaim that is mounted at path.")
      .absent("no volume but output's")
      .longest(253)
      .form(kObjectNameForm);
  s.add("everySteps", &CheckpointSpec::every_steps, "Steps from one checkpoint to the next.")
      .between(1, kMostSteps);
  s.add("keep", &CheckpointSpec::keep,
        "Newest checkpoints that are kept; the best one is kept beside them.")
      .between(1, 1000);
  s.add("gracePeriodSeconds", &CheckpointSpec::grace_period,
        "Time that a server has to write a checkpoint when stopped.")
      .between(0, 86400);
}

void describe(Struct<FailureRule>& s) {
  s.add("name", &FailureRule::name, "Name of the rule, for events.")
      .required()
      .longest(63)
      .form(kObjectNameForm);
  s.add("role", &FailureRule::role, "Role whose pods the rule is for.").absent("both");
  s.add("onExitCodes", &FailureRule::on_exit_codes,
        "Exit codes of our container. Exactly one of the three lists is given.")
      .absent("another list is given")
      .most_items(64)
      .between(1, 255);
  s.add("onPodConditions", &FailureRule::on_pod_conditions,
        "Types of conditions that are True of the pod.")
      .absent("another list is given")
      .most_items(20)
      .longest(316)
      .form(kQualifiedNameForm);
  s.add("onReasons", &FailureRule::on_reasons,
        "Reasons why the container or the pod ended, like OOMKilled or InitContainerFailed.")
      .absent("another list is given")
      .most_items(20)
      .longest(128)
      .form(kReasonForm);
  s.add("action", &FailureRule::action, "What is done.").required();
}

void describe(Struct<FailurePolicy>& s) {
  s.add("maxRestarts", &FailurePolicy::max_restarts,
        "Restarts of the servers after which the job fails; disruptions by the cluster are not "
        "counted.")
      .between(0, 10'000)
      .change(Change::kAlways);
  s.add("rules", &FailurePolicy::rules, "The first rule that fits a failed pod decides.")
      .absent("exit codes decide: docs/exit-codes.md")
      .most_items(20);
}

void describe(Struct<SchedulingPolicy>& s) {
  s.add("gang", &SchedulingPolicy::gang,
        "Scheduler that places all pods at once or none. Volcano is not built yet: a cluster "
        "refuses it with NotSupported.");
  s.add("queue", &SchedulingPolicy::queue,
        "Queue of Kueue in which the job waits until it is admitted.")
      .absent("no queue")
      .longest(253)
      .form(kObjectNameForm);
  s.add("priorityClassName", &SchedulingPolicy::priority_class_name, "PriorityClass of the pods.")
      .absent("the cluster's default")
      .longest(253)
      .form(kObjectNameForm);
  s.add("topologyKey", &SchedulingPolicy::topology_key,
        "Label of nodes; servers are placed where it is equal, and workers where servers are.")
      .absent("anywhere")
      .longest(316)
      .form(kQualifiedNameForm);
}

}  // namespace outrigger::api::schema
