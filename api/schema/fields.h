#pragma once

#include "api/schema/struct.h"
#include "api/training_job.h"

/// The tables of fields, one function a struct; struct_of<T>() finds them by argument. The texts
/// are the documentation: docs/fields.md and the CRD's descriptions show them.
namespace outrigger::api::schema {

void describe(Struct<ModelSpec>& s);
void describe(Struct<DataSpec>& s);
void describe(Struct<TrainingSpec>& s);
void describe(Struct<SplitSpec>& s);
void describe(Struct<ServerSpec>& s);
void describe(Struct<WorkersSpec>& s);
void describe(Struct<NetworkSpec>& s);
void describe(Struct<OutputSpec>& s);
void describe(Struct<CheckpointSpec>& s);
void describe(Struct<FailurePolicy>& s);
void describe(Struct<SchedulingPolicy>& s);
void describe(Struct<TrainingJobStatus>& s);
void describe(Struct<TrainingJob>& s);

// Bounds that several fields share.
inline constexpr double kMostSteps = 1e12;
inline constexpr double kMostSeconds = 100.0 * 366 * 86400;
inline constexpr double kMostPods = 10'000;

// Forms that several fields share.
inline constexpr TextRule kJobNameForm{
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "lower-case letters, digits and -, with a letter first and no - last (RFC 1035)"};
inline constexpr TextRule kObjectNameForm{
    "[a-z0-9]([-a-z0-9.]*[a-z0-9])?",
    "lower-case letters, digits, - and ., with a letter or digit at both ends"};
inline constexpr TextRule kQualifiedNameForm{
    "([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
    "a name like nvidia.com/gpu"};
inline constexpr TextRule kLayerNameForm{"[A-Za-z_][-A-Za-z0-9_.]*",
                                         "letters, digits, _, . and -, with a letter or _ first"};
inline constexpr TextRule kUrlForm{"https?://[^ ]+",
                                   "an address that starts with http:// or https://"};
inline constexpr TextRule kInterfaceForm{"[A-Za-z0-9][-A-Za-z0-9_.@:]*",
                                         "the name of a network interface, like eth0"};
inline constexpr TextRule kReasonForm{"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
                                      "one word like OOMKilled"};

}  // namespace outrigger::api::schema
