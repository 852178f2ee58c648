#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace outrigger::api {

enum class Precision { kFloat32, kFloat16, kBFloat16 };
enum class AllReducePrecision { kFloat32, kBFloat16 };
enum class Recompute { kNone, kActivations };
enum class EvaluationMetric { kAccuracy, kVerification, kIdentification };
/// Who evaluates: the server while training stands still, workers beside training, or whoever costs
/// training less.
enum class EvaluationPlace : uint8_t { kAuto, kServer, kWorkers };

std::string_view to_string(Precision value);
std::string_view to_string(AllReducePrecision value);
std::string_view to_string(Recompute value);
std::string_view to_string(EvaluationMetric value);
std::string_view to_string(EvaluationPlace value);

struct SoftmaxCrossEntropy {
  double label_smoothing = 0;
  bool operator==(const SoftmaxCrossEntropy&) const = default;
};
/// An et al., "Partial FC", CVPR 2022: classes are shared out over the ranks, and sampled.
struct PartialFc {
  double sample_rate = 1;
  bool operator==(const PartialFc&) const = default;
};
/// Deng et al., "ArcFace", CVPR 2019: an additive margin (radians) to the angle of the true class.
struct ArcFace {
  double margin = 0.5;
  double scale = 64;
  std::optional<PartialFc> partial_fc;  // absent: every rank has all classes
  bool operator==(const ArcFace&) const = default;
};
using Loss = std::variant<SoftmaxCrossEntropy, ArcFace>;

struct Sgd {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_norm_and_bias = false;
  bool operator==(const Sgd&) const = default;
};
using Optimizer = std::variant<Sgd>;

/// Learning rates by step: from 0 up to `base` over `warmup_steps` in a line, then as the kind
/// says.
struct ScheduleStart {
  double base = 0;
  int64_t warmup_steps = 0;
  bool operator==(const ScheduleStart&) const = default;
};
struct ConstantSchedule : ScheduleStart {
  bool operator==(const ConstantSchedule&) const = default;
};
/// Multiplied by `factor` at each of `at_steps`.
struct StepSchedule : ScheduleStart {
  std::vector<int64_t> at_steps;
  double factor = 0.1;
  bool operator==(const StepSchedule&) const = default;
};
/// Half a cosine from base down to `final_rate` at the last step.
struct CosineSchedule : ScheduleStart {
  double final_rate = 0;
  bool operator==(const CosineSchedule&) const = default;
};
using Schedule = std::variant<ConstantSchedule, StepSchedule, CosineSchedule>;

struct EvaluateSpec {
  std::optional<int64_t>
      every_steps;  // absent: after every epoch; the last step is evaluated always
  EvaluationMetric metric = EvaluationMetric::kAccuracy;
  bool keep_best = true;  // a checkpoint of the best value is kept beside the newest
  std::optional<int>
      stop_after_no_gain;  // evaluations without a better value; absent: never stops early
  EvaluationPlace place = EvaluationPlace::kAuto;
  bool operator==(const EvaluateSpec&) const = default;
};

/// `spec.training`.
struct TrainingSpec {
  std::optional<int64_t> epochs;  // exactly one of epochs and steps
  std::optional<int64_t> steps;
  int batch_size = 0;  // of one optimizer step, over all ranks
  std::optional<int>
      micro_batch_size;  // set by apply_defaults: the largest divisor of a rank's batch up to 32
  Loss loss;
  Optimizer optimizer;
  Schedule schedule;
  std::optional<double> clip_gradient_norm;  // absent: none
  std::optional<double> average_weights;     // decay of the moving average; absent: none
  Precision precision = Precision::kFloat32;
  int staleness = 0;
  int sync_every_steps = 1;
  AllReducePrecision all_reduce_precision = AllReducePrecision::kFloat32;
  Recompute recompute = Recompute::kNone;
  std::optional<EvaluateSpec> evaluate;  // set by apply_defaults where there is data.validation
  int64_t seed = 1;
  bool operator==(const TrainingSpec&) const = default;
};

}  // namespace outrigger::api
