#include <gtest/gtest.h>

#include "api/defaults.h"
#include "api/validate.h"
#include "sample_job.h"

namespace outrigger::api {
namespace {

/// Changes the sample job in place of a text; `error` is the whole text of what validate then says.
struct BrokenRule {
  const char* name;
  void (*change)(TrainingJobSpec&);
  const char* error;
};

void PrintTo(const BrokenRule& broken, std::ostream* out) { *out << broken.name; }

class BrokenRules : public testing::TestWithParam<BrokenRule> {};

TEST_P(BrokenRules, AreReportedAtTheFieldThatIsToChange) {
  TrainingJob job = sample_job();
  GetParam().change(job.spec);
  EXPECT_EQ(to_string(validate(job)), GetParam().error);
}

FailureRule rule(const std::string& name) {
  FailureRule result;
  result.name = name;
  result.on_reasons = {"OOMKilled"};
  return result;
}

LayerSpec layer(const std::string& name, LayerKind kind, std::vector<std::string> inputs = {}) {
  return {name, std::move(inputs), kind};
}

nlohmann::json parse(const char* text) { return nlohmann::json::parse(text); }

INSTANTIATE_TEST_SUITE_P(
    Model, BrokenRules,
    testing::Values(
        BrokenRule{"no model", [](TrainingJobSpec& s) { s.model.name.reset(); },
                   "spec.model: 0 given of which exactly one is needed: name, layers"},
        BrokenRule{"head of nothing", [](TrainingJobSpec& s) { s.model.replace_head = true; },
                   "spec.model.replaceHead: true needs weights: without them the classifier starts "
                   "anew in any "
                   "case"},
        BrokenRule{"layer twice",
                   [](TrainingJobSpec& s) {
                     s.model = {.layers = {layer("a", ReluLayer{}), layer("a", ReluLayer{})}};
                   },
                   "spec.model.layers[1].name: \"a\" is the name of a layer before it"},
        BrokenRule{"sum of one",
                   [](TrainingJobSpec& s) { s.model = {.layers = {layer("a", AddLayer{})}}; },
                   "spec.model.layers[0].inputs: 0 given; an add layer needs exactly 2 inputs"},
        BrokenRule{"sum of three",
                   [](TrainingJobSpec& s) {
                     s.model = {.layers = {layer("a", ReluLayer{}),
                                           layer("b", AddLayer{}, {"input", "a", "a"})}};
                   },
                   "spec.model.layers[1].inputs: 3 given; an add layer needs exactly 2 inputs"},
        BrokenRule{
            "two inputs",
            [](TrainingJobSpec& s) {
              s.model = {
                  .layers = {layer("a", ReluLayer{}), layer("b", ReluLayer{}, {"a", "input"})}};
            },
            "spec.model.layers[1].inputs: 2 inputs are too many; only an add layer has several"}));

INSTANTIATE_TEST_SUITE_P(
    Templates, BrokenRules,
    testing::Values(
        BrokenRule{"unknown member",
                   [](TrainingJobSpec& s) { s.server.pod_template = parse(R"({"status": {}})"); },
                   "spec.server.template.status: unknown field; allowed here: metadata, spec"},
        BrokenRule{"name of a pod",
                   [](TrainingJobSpec& s) {
                     s.workers.pod_template = parse(R"({"metadata": {"name": "x"}})");
                   },
                   "spec.workers.template.metadata.name: unknown field; allowed here: labels, "
                   "annotations"},
        BrokenRule{"number as label",
                   [](TrainingJobSpec& s) {
                     s.workers.pod_template = parse(R"({"metadata": {"labels": {"team": 7}}})");
                   },
                   "spec.workers.template.metadata.labels.team: text is needed"}));

INSTANTIATE_TEST_SUITE_P(
    Data, BrokenRules,
    testing::Values(
        BrokenRule{"no source", [](TrainingJobSpec& s) { s.data.train.path.reset(); },
                   "spec.data.train: 0 given of which exactly one is needed: path, urls"},
        BrokenRule{
            "folder by address",
            [](TrainingJobSpec& s) {
              s.data.validation = DataSource{.urls = {"http://host/a.tar"}};
              s.training.evaluate = EvaluateSpec{};
            },
            "spec.data.validation.urls: only format WebDataset is read from addresses; this is "
            "ImageFolder"},
        BrokenRule{"beside the volume",
                   [](TrainingJobSpec& s) { s.data.volume_claim_name = "faces"; },
                   "spec.data.train.path: \"faces\" is not on the volume; data.volumeClaimName is "
                   "mounted at "
                   "/data"},
        BrokenRule{"balanced in a window",
                   [](TrainingJobSpec& s) {
                     s.data.sampling = Sampling::kClassBalanced;
                     s.data.shuffle = ShuffleSpec{.window = 100};
                   },
                   "spec.data.shuffle: sampling ClassBalanced draws every sample anew and has no "
                   "use for it; leave one of the two out"},
        BrokenRule{"two channels", [](TrainingJobSpec& s) { s.data.image.channels = 2; },
                   "spec.data.image.channels: 2 is not allowed; 1 (grey) or 3 (colour)"},
        BrokenRule{"scales crossed",
                   [](TrainingJobSpec& s) {
                     s.data.augment = {RandomHorizontalFlip{},
                                       RandomResizedCrop{.min_scale = 0.9, .max_scale = 0.5}};
                   },
                   "spec.data.augment[1].randomResizedCrop.minScale: 0.9 is too large; at most "
                   "maxScale, which is "
                   "0.5"},
        BrokenRule{
            "crop of nothing",
            [](TrainingJobSpec& s) { s.data.augment = {RandomResizedCrop{.min_scale = 0.00005}}; },
            "spec.data.augment[0].randomResizedCrop.minScale: 5e-05 is too small; at least "
            "0.0001"},
        BrokenRule{"crops as slits",
                   [](TrainingJobSpec& s) {
                     s.data.augment = {RandomResizedCrop{.min_ratio = 0.05, .max_ratio = 20}};
                   },
                   "spec.data.augment[0].randomResizedCrop.minRatio: 0.05 is too small; at least "
                   "0.1\n"
                   "spec.data.augment[0].randomResizedCrop.maxRatio: 20 is too large; at most 10"},
        BrokenRule{"erasing slits",
                   [](TrainingJobSpec& s) {
                     s.data.augment = {
                         RandomErasing{.min_area = 0.00001, .min_ratio = 0.01, .max_ratio = 100}};
                   },
                   "spec.data.augment[0].randomErasing.minArea: 1e-05 is too small; at least "
                   "0.0001\n"
                   "spec.data.augment[0].randomErasing.minRatio: 0.01 is too small; at least 0.1\n"
                   "spec.data.augment[0].randomErasing.maxRatio: 100 is too large; at most 10"}));

INSTANTIATE_TEST_SUITE_P(
    Training, BrokenRules,
    testing::Values(
        BrokenRule{"no end", [](TrainingJobSpec& s) { s.training.epochs.reset(); },
                   "spec.training: 0 given of which exactly one is needed: epochs, steps"},
        BrokenRule{"uneven micro-batches",
                   [](TrainingJobSpec& s) { s.training.micro_batch_size = 48; },
                   "spec.training.batchSize: 64 is not a multiple of ranks x microBatchSize, which "
                   "is 1 x 48"},
        BrokenRule{"uneven ranks", [](TrainingJobSpec& s) { s.server.replicas = 3; },
                   "spec.training.batchSize: 64 is not a multiple of the 3 ranks (server.replicas "
                   "x max(1, "
                   "server.gpus))"},
        BrokenRule{"steps fall back",
                   [](TrainingJobSpec& s) {
                     s.training.schedule = StepSchedule{{0.1, 0}, {20, 10}, 0.1};
                   },
                   "spec.training.schedule.step.atSteps: the steps are not ascending"},
        BrokenRule{
            "no steps",
            [](TrainingJobSpec& s) {
              s.training.schedule = StepSchedule{{0.1, 0}, {}, 0.1};
            },
            "spec.training.schedule.step.atSteps: an empty list; at least one step is needed"},
        BrokenRule{
            "cosine upwards",
            [](TrainingJobSpec& s) {
              s.training.schedule = CosineSchedule{{0.1, 0}, 0.5};
            },
            "spec.training.schedule.cosine.final: 0.5 is too large; at most base, which is 0.1"},
        BrokenRule{
            "nesterov without momentum",
            [](TrainingJobSpec& s) { s.training.optimizer = Sgd{.momentum = 0, .nesterov = true}; },
            "spec.training.optimizer.sgd.nesterov: true needs momentum above 0"},
        BrokenRule{"nothing to evaluate on",
                   [](TrainingJobSpec& s) { s.training.evaluate = EvaluateSpec{}; },
                   "spec.training.evaluate: there is nothing to evaluate on; give data.validation"},
        BrokenRule{"evaluation by workers that may end the run",
                   [](TrainingJobSpec& s) {
                     s.data.validation = s.data.train;
                     s.training.evaluate =
                         EvaluateSpec{.stop_after_no_gain = 3, .place = EvaluationPlace::kWorkers};
                   },
                   "spec.training.evaluate.place: Workers cannot be with stopAfterNoGain: results "
                   "that come later would end each run at another step"},
        BrokenRule{"bounds without a text", [](TrainingJobSpec& s) { s.training.staleness = -1; },
                   "spec.training.staleness: -1 is too small; at least 0"}));

INSTANTIATE_TEST_SUITE_P(
    Cluster, BrokenRules,
    testing::Values(
        BrokenRule{"bound of pixels",
                   [](TrainingJobSpec& s) {
                     s.split = {.cut = "Input", .max_bytes_per_second = 1'000'000};
                   },
                   "spec.split.maxBytesPerSecond: bounds plans that are found, and there is "
                   "nothing to find; write cut: Auto, or a layer without sharePercent"},
        BrokenRule{"bound of a share",
                   [](TrainingJobSpec& s) {
                     s.split = {
                         .cut = "relu1", .share_percent = 50, .max_bytes_per_second = 1'000'000};
                   },
                   "spec.split.maxBytesPerSecond: bounds plans that are found, and there is "
                   "nothing to find; write cut: Auto, or a layer without sharePercent"},
        BrokenRule{"too few workers",
                   [](TrainingJobSpec& s) { s.workers = {.replicas = 1, .min_replicas = 2}; },
                   "spec.workers.minReplicas: 2 is too large; at most replicas, which is 1"},
        BrokenRule{"too many workers",
                   [](TrainingJobSpec& s) { s.workers = {.replicas = 3, .max_replicas = 2}; },
                   "spec.workers.replicas: 3 is too large; at most maxReplicas, which is 2"},
        BrokenRule{"boundless",
                   [](TrainingJobSpec& s) { s.workers.autoscaling = AutoscalingSpec{}; },
                   "spec.workers.autoscaling: needs maxReplicas, so that the number of workers has "
                   "a bound"},
        BrokenRule{"relative mount",
                   [](TrainingJobSpec& s) { s.output.volume_claim_name = "runs"; },
                   "spec.output.path: \"runs\" is relative; a volume is mounted at a path that "
                   "begins with /"},
        BrokenRule{"mount nowhere",
                   [](TrainingJobSpec& s) { s.checkpoint.volume_claim_name = "runs"; },
                   "spec.checkpoint.volumeClaimName: needs path, where the volume is mounted"},
        BrokenRule{"rule twice",
                   [](TrainingJobSpec& s) {
                     s.failure_policy.rules = {rule("a"), rule("a")};
                   },
                   "spec.failurePolicy.rules[1].name: \"a\" is the name of a rule before it"},
        BrokenRule{
            "rule for nothing",
            [](TrainingJobSpec& s) {
              s.failure_policy.rules = {rule("a")};
              s.failure_policy.rules[0].on_reasons.clear();
            },
            "spec.failurePolicy.rules[0]: 0 given of which exactly one is needed: onExitCodes, "
            "onPodConditions, onReasons"},
        BrokenRule{"server replaced",
                   [](TrainingJobSpec& s) {
                     s.failure_policy.rules = {rule("a")};
                     s.failure_policy.rules[0].action = FailureAction::kReplacePod;
                   },
                   "spec.failurePolicy.rules[0].action: ReplacePod needs role Worker; servers "
                   "restart together"}));

TEST(Validate, TakesAJobOfLayers) {
  TrainingJob job = sample_job();
  job.spec.model = {.layers = {layer("a", ConvolutionLayer{.channels = 4, .kernel = 3}),
                               layer("b", ReluLayer{}), layer("sum", AddLayer{}, {"a", "b"})}};
  EXPECT_EQ(to_string(validate(job)), "");
}

TEST(Defaults, MicroBatchIsTheLargestDivisorOfARanksBatchUpTo32) {
  TrainingJob job = sample_job();
  const auto size_for = [&](int batch, int replicas) {
    job.spec.training.micro_batch_size.reset();
    job.spec.training.batch_size = batch;
    job.spec.server.replicas = replicas;
    apply_defaults(job);
    return job.spec.training.micro_batch_size;
  };
  EXPECT_EQ(size_for(256, 1), 32);
  EXPECT_EQ(size_for(8, 1), 8);
  EXPECT_EQ(size_for(100, 1), 25);
  EXPECT_EQ(size_for(256, 16), 16);
  EXPECT_EQ(size_for(100, 3), std::nullopt);
}

TEST(Defaults, GivenValuesStay) {
  TrainingJob job = sample_job();
  job.spec.training.micro_batch_size = 4;
  apply_defaults(job);
  EXPECT_EQ(job.spec.training.micro_batch_size, 4);
  EXPECT_FALSE(job.spec.training.evaluate);
}

TEST(Defaults, ValidationDataIsEvaluatedAfterEveryEpoch) {
  TrainingJob job = sample_job();
  job.spec.data.validation = DataSource{.path = "held-out"};
  apply_defaults(job);
  ASSERT_TRUE(job.spec.training.evaluate);
  EXPECT_EQ(*job.spec.training.evaluate, EvaluateSpec{});
}

TEST(RankCount, CountsGpusOrOneForEachReplica) {
  TrainingJobSpec spec;
  spec.server = {.replicas = 3, .gpus = 0};
  EXPECT_EQ(rank_count(spec), 3);
  spec.server.gpus = 4;
  EXPECT_EQ(rank_count(spec), 12);
}

}  // namespace
}  // namespace outrigger::api
