#pragma once

#include <string_view>

/// Every name that two parts, or a part and a person, must agree on. Nothing here is spelled
/// elsewhere.
namespace outrigger::api {

inline constexpr std::string_view kGroup = "outrigger.dev";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "outrigger.dev/v1alpha1";
inline constexpr std::string_view kKind = "TrainingJob";
inline constexpr std::string_view kPlural = "trainingjobs";
inline constexpr std::string_view kShortName = "tjob";

inline constexpr std::string_view kManagedByOperator = "outrigger.dev/operator";
inline constexpr std::string_view kManagedByMultiKueue = "kueue.x-k8s.io/multikueue";

// Ports, all TCP. Gloo's are ephemeral.
inline constexpr int kJoinPort = 29400;   // joins and socket links; spec.network.port
inline constexpr int kStatusPort = 8080;  // health, metrics, status

// HTTP paths of the status port, as far as the operator asks there.
inline constexpr std::string_view kReadyPath = "/readyz";
inline constexpr std::string_view kStatusPath = "/status";
inline constexpr std::string_view kJobPath = "/job";  // what was edited of a job, by POST

// Labels and annotations on everything the operator makes.
inline constexpr std::string_view kJobNameLabel = "outrigger.dev/job-name";
inline constexpr std::string_view kJobUidLabel = "outrigger.dev/job-uid";
inline constexpr std::string_view kRoleLabel = "outrigger.dev/role";
inline constexpr std::string_view kIndexLabel = "outrigger.dev/index";
inline constexpr std::string_view kAttemptLabel = "outrigger.dev/attempt";
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedByValue = "outrigger";
inline constexpr std::string_view kQueueNameLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kDefaultContainerAnnotation =
    "kubectl.kubernetes.io/default-container";
inline constexpr std::string_view kSafeToEvictAnnotation =
    "cluster-autoscaler.kubernetes.io/safe-to-evict";

// Roles, in names of pods, labels and status; a role's container bears the role's name.
inline constexpr std::string_view kServerRole = "server";
inline constexpr std::string_view kWorkerRole = "worker";
inline constexpr std::string_view kServerContainer = "server";
inline constexpr std::string_view kWorkerContainer = "worker";

// Where claims and files are mounted in a pod. output and checkpoint claims are mounted at their
// own paths.
inline constexpr std::string_view kDataMountPath = "/data";
inline constexpr std::string_view kJobFilePath = "/etc/outrigger/job.yaml";
inline constexpr std::string_view kJoinTokenPath = "/etc/outrigger/secret/join-token";
inline constexpr std::string_view kControlTokenPath = "/etc/outrigger/secret/control-token";
inline constexpr std::string_view kTerminationLogPath = "/dev/termination-log";

// Environment of a process; launch.h reads them.
inline constexpr std::string_view kRoleVariable = "OUTRIGGER_ROLE";
inline constexpr std::string_view kJobFileVariable = "OUTRIGGER_JOB_FILE";
inline constexpr std::string_view kRankVariable = "OUTRIGGER_RANK";
inline constexpr std::string_view kReplicasVariable = "OUTRIGGER_REPLICAS";
inline constexpr std::string_view kIndexVariable = "OUTRIGGER_INDEX";
inline constexpr std::string_view kAttemptVariable = "OUTRIGGER_ATTEMPT";
inline constexpr std::string_view kServerVariable = "OUTRIGGER_SERVER";
inline constexpr std::string_view kRendezvousVariable = "OUTRIGGER_RENDEZVOUS";
inline constexpr std::string_view kTokenFileVariable = "OUTRIGGER_TOKEN_FILE";
inline constexpr std::string_view kControlTokenFileVariable = "OUTRIGGER_CONTROL_TOKEN_FILE";
inline constexpr std::string_view kListenVariable = "OUTRIGGER_LISTEN";
inline constexpr std::string_view kStatusPortVariable = "OUTRIGGER_STATUS_PORT";
inline constexpr std::string_view kOutputVariable = "OUTRIGGER_OUTPUT";
inline constexpr std::string_view kCheckpointVariable = "OUTRIGGER_CHECKPOINT";
inline constexpr std::string_view kMountsVariable = "OUTRIGGER_MOUNTS";
inline constexpr std::string_view kResumeVariable = "OUTRIGGER_RESUME";
inline constexpr std::string_view kThreadsVariable = "OUTRIGGER_THREADS";
inline constexpr std::string_view kDeviceVariable = "OUTRIGGER_DEVICE";
inline constexpr std::string_view kTf32Variable = "OUTRIGGER_TF32";
inline constexpr std::string_view kNondeterministicVariable = "OUTRIGGER_NONDETERMINISTIC";
inline constexpr std::string_view kTerminationFileVariable = "OUTRIGGER_TERMINATION_FILE";
inline constexpr std::string_view kLogLevelVariable = "OUTRIGGER_LOG_LEVEL";

// Conditions of status.
inline constexpr std::string_view kConditionSuspended = "Suspended";
inline constexpr std::string_view kConditionPodsScheduled = "PodsScheduled";
inline constexpr std::string_view kConditionPodsReady = "PodsReady";
inline constexpr std::string_view kConditionRunning = "Running";
inline constexpr std::string_view kConditionRestarting = "Restarting";
inline constexpr std::string_view kConditionDegraded = "Degraded";
inline constexpr std::string_view kConditionInputStarved = "InputStarved";
inline constexpr std::string_view kConditionScalingContested = "ScalingContested";
inline constexpr std::string_view kConditionComplete = "Complete";
inline constexpr std::string_view kConditionFailed = "Failed";

// Files of a run, in <output.path>/<job>/.
inline constexpr std::string_view kJobFileName = "job.yaml";
inline constexpr std::string_view kMetricsFileName = "metrics.jsonl";
inline constexpr std::string_view kTraceFileName = "trace.json";
inline constexpr std::string_view kReportFileName = "report.html";
inline constexpr std::string_view kCheckpointPrefix = "step-";

}  // namespace outrigger::api
