#pragma once

#include <array>
#include <string_view>

#include "api/data.h"
#include "api/roles.h"
#include "api/run_policy.h"
#include "api/status.h"
#include "api/training.h"

/// How each enumeration is written: the one table of these names, in the order in which the
/// documents list them.
namespace outrigger::api {

template <typename E>
struct EnumName {
  E value;
  std::string_view name;
};

/// `EnumNames<E>::kAll`; only enumerations of the API have it.
template <typename E>
struct EnumNames;

template <>
struct EnumNames<DataFormat> {
  static constexpr std::array<EnumName<DataFormat>, 2> kAll{
      {{DataFormat::kImageFolder, "ImageFolder"}, {DataFormat::kWebDataset, "WebDataset"}}};
};
template <>
struct EnumNames<Sampling> {
  static constexpr std::array<EnumName<Sampling>, 2> kAll{
      {{Sampling::kUniform, "Uniform"}, {Sampling::kClassBalanced, "ClassBalanced"}}};
};
template <>
struct EnumNames<Precision> {
  static constexpr std::array<EnumName<Precision>, 3> kAll{{{Precision::kFloat32, "Float32"},
                                                            {Precision::kFloat16, "Float16"},
                                                            {Precision::kBFloat16, "BFloat16"}}};
};
template <>
struct EnumNames<AllReducePrecision> {
  static constexpr std::array<EnumName<AllReducePrecision>, 2> kAll{
      {{AllReducePrecision::kFloat32, "Float32"}, {AllReducePrecision::kBFloat16, "BFloat16"}}};
};
template <>
struct EnumNames<Recompute> {
  static constexpr std::array<EnumName<Recompute>, 2> kAll{
      {{Recompute::kNone, "None"}, {Recompute::kActivations, "Activations"}}};
};
template <>
struct EnumNames<EvaluationMetric> {
  static constexpr std::array<EnumName<EvaluationMetric>, 3> kAll{
      {{EvaluationMetric::kAccuracy, "Accuracy"},
       {EvaluationMetric::kVerification, "Verification"},
       {EvaluationMetric::kIdentification, "Identification"}}};
};
template <>
struct EnumNames<EvaluationPlace> {
  static constexpr std::array<EnumName<EvaluationPlace>, 3> kAll{
      {{EvaluationPlace::kAuto, "Auto"},
       {EvaluationPlace::kServer, "Server"},
       {EvaluationPlace::kWorkers, "Workers"}}};
};
template <>
struct EnumNames<WireFormat> {
  static constexpr std::array<EnumName<WireFormat>, 4> kAll{{{WireFormat::kAuto, "Auto"},
                                                             {WireFormat::kFloat32, "Float32"},
                                                             {WireFormat::kBFloat16, "BFloat16"},
                                                             {WireFormat::kInt8, "Int8"}}};
};
template <>
struct EnumNames<Engine> {
  static constexpr std::array<EnumName<Engine>, 2> kAll{
      {{Engine::kBuiltin, "Builtin"}, {Engine::kExternal, "External"}}};
};
template <>
struct EnumNames<LinkKind> {
  static constexpr std::array<EnumName<LinkKind>, 3> kAll{
      {{LinkKind::kAuto, "Auto"}, {LinkKind::kGloo, "Gloo"}, {LinkKind::kSockets, "Sockets"}}};
};
template <>
struct EnumNames<Encryption> {
  static constexpr std::array<EnumName<Encryption>, 2> kAll{
      {{Encryption::kNone, "None"}, {Encryption::kTls, "TLS"}}};
};
template <>
struct EnumNames<Role> {
  static constexpr std::array<EnumName<Role>, 2> kAll{
      {{Role::kServer, "Server"}, {Role::kWorker, "Worker"}}};
};
template <>
struct EnumNames<FailureAction> {
  static constexpr std::array<EnumName<FailureAction>, 4> kAll{
      {{FailureAction::kFailJob, "FailJob"},
       {FailureAction::kRestartJob, "RestartJob"},
       {FailureAction::kRestartJobAndIgnoreMaxRestarts, "RestartJobAndIgnoreMaxRestarts"},
       {FailureAction::kReplacePod, "ReplacePod"}}};
};
template <>
struct EnumNames<Gang> {
  static constexpr std::array<EnumName<Gang>, 2> kAll{
      {{Gang::kNone, "None"}, {Gang::kVolcano, "Volcano"}}};
};
template <>
struct EnumNames<CleanPodPolicy> {
  static constexpr std::array<EnumName<CleanPodPolicy>, 3> kAll{
      {{CleanPodPolicy::kAll, "All"},
       {CleanPodPolicy::kRunning, "Running"},
       {CleanPodPolicy::kNone, "None"}}};
};
template <>
struct EnumNames<ConditionStatus> {
  static constexpr std::array<EnumName<ConditionStatus>, 3> kAll{
      {{ConditionStatus::kTrue, "True"},
       {ConditionStatus::kFalse, "False"},
       {ConditionStatus::kUnknown, "Unknown"}}};
};
template <>
struct EnumNames<StallCause> {
  static constexpr std::array<EnumName<StallCause>, 7> kAll{
      {{StallCause::kNone, "None"},
       {StallCause::kRead, "Read"},
       {StallCause::kDecode, "Decode"},
       {StallCause::kStem, "Stem"},
       {StallCause::kLink, "Link"},
       {StallCause::kWeights, "Weights"},
       {StallCause::kOptimizer, "Optimizer"}}};
};

template <typename E>
constexpr std::string_view enum_name(E value) {
  for (const auto& row : EnumNames<E>::kAll) {
    if (row.value == value) return row.name;
  }
  return "?";
}

}  // namespace outrigger::api
