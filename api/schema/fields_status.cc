#include "api/schema/fields.h"

namespace outrigger::api::schema {

constexpr size_t kLongestMessage = 32768;

void describe(Struct<Condition>& s) {
  s.add("type", &Condition::type, "Name of the condition.").required().longest(316);
  s.add("status", &Condition::status, "Whether it holds.").required();
  s.add("observedGeneration", &Condition::observed_generation,
        "Generation of the spec that it is about.")
      .at_least(0);
  s.add("lastTransitionTime", &Condition::last_transition_time, "When status changed.");
  s.add("reason", &Condition::reason, "One word for programs.").may_be_empty();
  s.add("message", &Condition::message, "A sentence for people.")
      .may_be_empty()
      .longest(kLongestMessage);
}

void describe(Struct<RoleStatus>& s) {
  s.add("name", &RoleStatus::name, "server or worker.").required().longest(63);
  s.add("desired", &RoleStatus::desired, "Pods that there should be.").at_least(0);
  s.add("ready", &RoleStatus::ready, "Pods that are ready.").at_least(0);
  s.add("failed", &RoleStatus::failed, "Pods that failed and are kept.").at_least(0);
}

void describe(Struct<WorkersStatus>& s) {
  s.add("replicas", &WorkersStatus::replicas, "Worker pods that exist; the scale subresource.")
      .at_least(0);
  s.add("selector", &WorkersStatus::selector, "Label selector of the worker pods.").may_be_empty();
  s.add("summary", &WorkersStatus::summary, "Ready of desired, like 3/4.").may_be_empty();
}

void describe(Struct<ScalingStatus>& s) {
  s.add("replicas", &ScalingStatus::replicas, "Workers as the autoscaler set them, or found them.")
      .at_least(0);
  s.add("former", &ScalingStatus::former, "The number that they replace, until that is written.")
      .at_least(0);
  s.add("desired", &ScalingStatus::desired, "Workers that the server could use when last asked.")
      .at_least(0);
  s.add("changedTime", &ScalingStatus::changed_time, "When the number changed, whoever wrote it.");
  s.add("foreignTime", &ScalingStatus::foreign_time, "When somebody else wrote it.");
  s.add("reason", &ScalingStatus::reason, "Why it is what it is.").may_be_empty();
}

void describe(Struct<MetricValue>& s) {
  s.add("name", &MetricValue::name, "Name of the number.").required().longest(128);
  s.add("value", &MetricValue::value, "The number as text.").required().longest(64);
}

void describe(Struct<ProgressStatus>& s) {
  s.add("percent", &ProgressStatus::percent, "Part of the steps that is done.").between(0, 100);
  s.add("epoch", &ProgressStatus::epoch, "Epoch that runs.").at_least(0);
  s.add("step", &ProgressStatus::step, "Steps done.").at_least(0);
  s.add("totalSteps", &ProgressStatus::total_steps, "Steps in all.").at_least(0);
  s.add("samplesPerSecond", &ProgressStatus::samples_per_second, "Rate over the last steps.")
      .at_least(0);
  s.add("remainingSeconds", &ProgressStatus::remaining_seconds, "Time left at that rate.")
      .at_least(0);
  s.add("metrics", &ProgressStatus::metrics, "Loss, accuracy, ….").most_items(32);
  s.add("updatedTime", &ProgressStatus::updated_time, "When the server said so.");
}

void describe(Struct<SplitStatus>& s) {
  s.add("plan", &SplitStatus::plan, "Number of the plan.").at_least(0);
  s.add("cut", &SplitStatus::cut, "Its cut.").may_be_empty().longest(128);
  s.add("sharePercent", &SplitStatus::share_percent, "Its share.").between(0, 100);
  s.add("localInputPercent", &SplitStatus::local_input_percent,
        "Of the pixels that cross no cut, made by the server itself.")
      .between(0, 100);
  s.add("serverPercent", &SplitStatus::server_percent,
        "Of the network's multiply-adds, done by the server.")
      .between(0, 100);
  s.add("stallPercent", &SplitStatus::stall_percent, "Part of its time in which the device waits.")
      .between(0, 100);
  s.add("stallCause", &SplitStatus::stall_cause, "What it waits for most.");
  s.add("reason", &SplitStatus::reason, "Why this plan.").may_be_empty();
}

void describe(Struct<CheckpointStatus>& s) {
  s.add("step", &CheckpointStatus::step, "Step of the newest checkpoint.").at_least(0);
  s.add("path", &CheckpointStatus::path, "Where it lies.").may_be_empty();
  s.add("time", &CheckpointStatus::time, "When it was written.");
}

void describe(Struct<OutputStatus>& s) {
  s.add("path", &OutputStatus::path, "Where the run's files lie.").may_be_empty();
}

void describe(Struct<FailureStatus>& s) {
  s.add("role", &FailureStatus::role, "Role of the process that failed.");
  s.add("pod", &FailureStatus::pod, "Its pod.").may_be_empty();
  s.add("node", &FailureStatus::node, "The pod's node.").may_be_empty();
  s.add("exitCode", &FailureStatus::exit_code, "Exit status of our container.");
  s.add("reason", &FailureStatus::reason, "One word for programs.").may_be_empty();
  s.add("message", &FailureStatus::message, "The process's last words.")
      .may_be_empty()
      .longest(kLongestMessage);
  s.add("time", &FailureStatus::time, "When it was seen.");
}

void describe(Struct<TrainingJobStatus>& s) {
  s.add("observedGeneration", &TrainingJobStatus::observed_generation,
        "Generation that this status is about.")
      .at_least(0);
  s.add("conditions", &TrainingJobStatus::conditions,
        "Suspended, PodsScheduled, PodsReady, Running, Restarting, "
        "Degraded, InputStarved, ScalingContested, Complete, Failed.")
      .most_items(32);
  s.add("state", &TrainingJobStatus::state, "One word for display, derived from the conditions.")
      .may_be_empty()
      .longest(63);
  s.add("startTime", &TrainingJobStatus::start_time,
        "When the pods were asked for; cleared on suspend.");
  s.add("completionTime", &TrainingJobStatus::completion_time, "When the job completed or failed.");
  s.add("restarts", &TrainingJobStatus::restarts, "Restarts that count against maxRestarts.")
      .at_least(0);
  s.add("executionAttempts", &TrainingJobStatus::execution_attempts,
        "How often the servers were started.")
      .at_least(0);
  s.add("images", &TrainingJobStatus::images, "Image of each role, with digest.").most_items(8);
  s.add("roles", &TrainingJobStatus::roles, "Pods by role.").most_items(8);
  s.add("workers", &TrainingJobStatus::workers, "Numbers for scaling and display.");
  s.add("scaling", &TrainingJobStatus::scaling, "What the autoscaler does; absent without one.");
  s.add("progress", &TrainingJobStatus::progress, "How far training is.");
  s.add("split", &TrainingJobStatus::split, "The plan in force.");
  s.add("checkpoint", &TrainingJobStatus::checkpoint, "The newest checkpoint.");
  s.add("output", &TrainingJobStatus::output, "The run's files.");
  s.add("lastFailure", &TrainingJobStatus::last_failure, "The last failure of a process.");
}

}  // namespace outrigger::api::schema
