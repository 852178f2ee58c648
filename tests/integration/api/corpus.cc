#include "corpus.h"

#include "api/defaults.h"
#include "api/parse.h"
#include "api/validate.h"
#include "api/write.h"
#include "common/error.h"
#include "common/file.h"

namespace outrigger::api {
namespace {

constexpr const char* kShortest = R"({
  "apiVersion": "outrigger.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "job"},
  "spec": {
    "model": {"name": "lenet5"},
    "data": {"train": {"path": "faces"}, "image": {"height": 28, "width": 28}},
    "training": {"epochs": 3, "batchSize": 64, "schedule": {"constant": {"base": 0.1}}},
    "output": {"path": "runs"}}})";

constexpr const char* kLayers = R"({"spec": {
  "model": {"name": null, "weights": "start.safetensors", "replaceHead": true, "layers": [
    {"name": "conv", "convolution": {"channels": 8, "kernel": 3, "stride": 2, "padding": 1,
                                     "groups": 1, "bias": true}},
    {"name": "norm", "batchNorm": {"epsilon": 1e-5, "momentum": 0.1}},
    {"name": "relu", "relu": {}},
    {"name": "slope", "prelu": {}},
    {"name": "sum", "add": {}, "inputs": ["relu", "slope"]},
    {"name": "largest", "maxPool": {"kernel": 3, "stride": 2, "padding": 1}},
    {"name": "mean", "averagePool": {"kernel": 3, "stride": 2, "padding": 1}},
    {"name": "all", "globalAveragePool": {}},
    {"name": "flat", "flatten": {}},
    {"name": "drop", "dropout": {"rate": 0.2}},
    {"name": "out", "linear": {"features": 40, "bias": false}, "inputs": ["drop"]}]},
  "data": {"train": {"path": null, "urls": ["https://example.com/0.tar"], "format": "WebDataset"},
    "augment": [{"resize": {"shorterSide": 64}}, {"centerCrop": {}},
      {"colorJitter": {"brightness": 0.1, "contrast": 0.1, "saturation": 0.1, "hue": 0.1}},
      {"randomRotation": {"degrees": 10}},
      {"randomErasing": {"probability": 0.5, "minArea": 0.1, "maxArea": 0.2, "minRatio": 0.5,
                         "maxRatio": 2}}]},
  "training": {"epochs": null, "steps": 100,
    "loss": {"softmaxCrossEntropy": {"labelSmoothing": 0.1}},
    "schedule": {"constant": null, "step": {"base": 0.1, "warmupSteps": 5, "atSteps": [10, 20],
                                            "factor": 0.1}}},
  "failurePolicy": {"rules": [
    {"name": "codes", "onExitCodes": [1, 137], "action": "RestartJob"},
    {"name": "drain", "role": "Server", "onPodConditions": ["DisruptionTarget"],
     "action": "RestartJobAndIgnoreMaxRestarts"}]}}})";

constexpr const char* kSchedule = R"({"spec": {"training": {
  "schedule": {"constant": {"base": 0.1, "warmupSteps": 3}},
  "optimizer": {"sgd": {"momentum": 0.5, "nesterov": true, "weightDecay": 0.1}}}}})";

/// A patch of the shortest job (RFC 7386: null takes away).
struct Row {
  const char* what;
  const char* patch;
  bool good;
};

constexpr Row kRules[] = {
    {"no model", R"({"spec": {"model": {"name": null}}})", false},
    {"name and layers", R"({"spec": {"model": {"layers": [{"name": "a", "relu": {}}]}}})", false},
    {"an empty list of layers is none", R"({"spec": {"model": {"layers": []}}})", true},
    {"replaceHead without weights", R"({"spec": {"model": {"replaceHead": true}}})", false},
    {"replaceHead", R"({"spec": {"model": {"replaceHead": true, "weights": "w"}}})", true},
    {"layer twice",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "a", "relu": {}},
        {"name": "a", "relu": {}}]}}})",
     false},
    {"layer named input",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "input", "relu": {}}]}}})", false},
    {"layer of two kinds",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "a", "relu": {}, "prelu": {}}]}}})",
     false},
    {"layer of no kind", R"({"spec": {"model": {"name": null, "layers": [{"name": "a"}]}}})",
     false},
    {"sum of one",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "a", "add": {},
        "inputs": ["input"]}]}}})",
     false},
    {"sum of two",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "a", "add": {},
        "inputs": ["input", "input"]}]}}})",
     true},
    {"sum of three",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "a", "add": {},
        "inputs": ["input", "input", "input"]}]}}})",
     false},
    {"a layer that reads one behind it, which is for the operator to refuse",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "a", "relu": {}, "inputs": ["b"]},
        {"name": "b", "relu": {}}]}}})",
     true},
    {"External without an image, which is for the operator to refuse",
     R"({"spec": {"server": {"engine": "External"}}})", true},
    {"two inputs of a relu",
     R"({"spec": {"model": {"name": null, "layers": [{"name": "a", "relu": {},
        "inputs": ["input", "input"]}]}}})",
     false},
    {"no source", R"({"spec": {"data": {"train": {"path": null}}}})", false},
    {"path and addresses",
     R"({"spec": {"data": {"train": {"urls": ["http://a/b"], "format": "WebDataset"}}}})", false},
    {"addresses of folders",
     R"({"spec": {"data": {"train": {"path": null, "urls": ["http://a/b"]}}}})", false},
    {"an empty list of addresses is none", R"({"spec": {"data": {"train": {"urls": []}}}})", true},
    {"path beside the volume", R"({"spec": {"data": {"volumeClaimName": "faces"}}})", false},
    {"path like the volume's",
     R"({"spec": {"data": {"volumeClaimName": "faces", "train": {"path": "/database"}}}})", false},
    {"path on the volume",
     R"({"spec": {"data": {"volumeClaimName": "faces", "train": {"path": "/data/a"}}}})", true},
    {"the volume itself",
     R"({"spec": {"data": {"volumeClaimName": "faces", "train": {"path": "/data"}}}})", true},
    {"validation beside the volume",
     R"({"spec": {"data": {"volumeClaimName": "faces", "train": {"path": "/data/a"},
        "validation": {"path": "b"}}}})",
     false},
    {"two channels", R"({"spec": {"data": {"image": {"channels": 2}}}})", false},
    {"least scale above the most",
     R"({"spec": {"data": {"augment": [{"randomResizedCrop": {"minScale": 0.9, "maxScale": 0.8}}]}}})",
     false},
    {"least scale above the default of the most",
     R"({"spec": {"data": {"augment": [{"randomErasing": {"minArea": 0.9}}]}}})", false},
    {"least ratio above the most",
     R"({"spec": {"data": {"augment": [{"randomResizedCrop": {"minRatio": 2, "maxRatio": 1}}]}}})",
     false},
    {"crop of nothing",
     R"({"spec": {"data": {"augment": [{"randomResizedCrop": {"minScale": 0.00005}}]}}})", false},
    {"crops as slits",
     R"({"spec": {"data": {"augment": [{"randomResizedCrop": {"minRatio": 0.05}}]}}})", false},
    {"the least and the most of a crop",
     R"({"spec": {"data": {"augment": [{"randomResizedCrop": {"minScale": 0.0001, "minRatio": 0.1,
        "maxRatio": 10}}]}}})",
     true},
    {"erasing slits", R"({"spec": {"data": {"augment": [{"randomErasing": {"maxRatio": 20}}]}}})",
     false},
    {"ratios of erasing",
     R"({"spec": {"data": {"augment": [{"randomErasing": {"minRatio": 4}}]}}})", false},
    {"no augmentation in an item", R"({"spec": {"data": {"augment": [{}]}}})", false},
    {"two augmentations in an item",
     R"({"spec": {"data": {"augment": [{"centerCrop": {}, "randomHorizontalFlip": {}}]}}})", false},
    {"epochs and steps", R"({"spec": {"training": {"steps": 5}}})", false},
    {"neither epochs nor steps", R"({"spec": {"training": {"epochs": null}}})", false},
    {"batch of no whole micro-batches", R"({"spec": {"training": {"microBatchSize": 24}}})", false},
    {"batch of micro-batches", R"({"spec": {"training": {"microBatchSize": 16}}})", true},
    {"batch of no whole ranks", R"({"spec": {"server": {"replicas": 3}}})", false},
    {"ranks by GPUs", R"({"spec": {"server": {"replicas": 2, "gpus": 4},
                                   "training": {"microBatchSize": 8}}})",
     true},
    {"too many ranks by GPUs", R"({"spec": {"server": {"replicas": 2, "gpus": 4},
                                            "training": {"microBatchSize": 16}}})",
     false},
    {"two losses",
     R"({"spec": {"training": {"loss": {"arcFace": {}, "softmaxCrossEntropy": {}}}}})", false},
    {"no loss in it", R"({"spec": {"training": {"loss": {}}}})", false},
    {"no optimizer in it", R"({"spec": {"training": {"optimizer": {}}}})", false},
    {"two schedules", R"({"spec": {"training": {"schedule": {"cosine": {"base": 0.1}}}}})", false},
    {"no steps of a schedule",
     R"({"spec": {"training": {"schedule": {"constant": null, "step": {"base": 1, "atSteps": []}}}}})",
     false},
    {"steps that fall",
     R"({"spec": {"training": {"schedule": {"constant": null,
        "step": {"base": 1, "atSteps": [2, 1]}}}}})",
     false},
    {"a step twice",
     R"({"spec": {"training": {"schedule": {"constant": null,
        "step": {"base": 1, "atSteps": [1, 2, 2]}}}}})",
     false},
    {"last rate above the first",
     R"({"spec": {"training": {"schedule": {"constant": null, "cosine": {"base": 1, "final": 2}}}}})",
     false},
    {"nesterov without momentum",
     R"({"spec": {"training": {"optimizer": {"sgd": {"nesterov": true, "momentum": 0}}}}})", false},
    {"nesterov with the default momentum",
     R"({"spec": {"training": {"optimizer": {"sgd": {"nesterov": true}}}}})", true},
    {"nothing to evaluate on", R"({"spec": {"training": {"evaluate": {}}}})", false},
    {"evaluation", R"({"spec": {"training": {"evaluate": {}},
                               "data": {"validation": {"path": "val"}}}})",
     true},
    {"evaluation by workers that may end the run", R"({"spec": {
       "training": {"evaluate": {"place": "Workers", "stopAfterNoGain": 3}},
       "data": {"validation": {"path": "val"}}}})",
     false},
    {"evaluation by workers", R"({"spec": {"training": {"evaluate": {"place": "Workers"}},
                                           "data": {"validation": {"path": "val"}}}})",
     true},
    {"a bound on bytes with pixels only",
     R"({"spec": {"split": {"cut": "Input", "maxBytesPerSecond": 1000000}}})", false},
    {"a bound on bytes with a fixed share",
     R"({"spec": {"split": {"cut": "relu1", "sharePercent": 50, "maxBytesPerSecond": 1000000}}})",
     false},
    {"a bound on bytes with a share to be found",
     R"({"spec": {"split": {"cut": "relu1", "maxBytesPerSecond": 1000000}}})", true},
    {"fewer workers than the fewest", R"({"spec": {"workers": {"replicas": 1, "minReplicas": 2}}})",
     false},
    {"more workers than the most", R"({"spec": {"workers": {"replicas": 3, "maxReplicas": 2}}})",
     false},
    {"autoscaling without bound", R"({"spec": {"workers": {"autoscaling": {}}}})", false},
    {"autoscaling", R"({"spec": {"workers": {"autoscaling": {}, "maxReplicas": 4}}})", true},
    {"output's volume at a relative path", R"({"spec": {"output": {"volumeClaimName": "runs"}}})",
     false},
    {"output's volume", R"({"spec": {"output": {"volumeClaimName": "runs", "path": "/runs"}}})",
     true},
    {"checkpoint's volume without path", R"({"spec": {"checkpoint": {"volumeClaimName": "runs"}}})",
     false},
    {"checkpoint's volume at a relative path",
     R"({"spec": {"checkpoint": {"volumeClaimName": "runs", "path": "runs"}}})", false},
    {"failure rule on nothing",
     R"({"spec": {"failurePolicy": {"rules": [{"name": "a", "action": "FailJob"}]}}})", false},
    {"failure rule on two things",
     R"({"spec": {"failurePolicy": {"rules": [{"name": "a", "action": "FailJob",
        "onExitCodes": [1], "onReasons": ["OOMKilled"]}]}}})",
     false},
    {"an empty list of reasons is none",
     R"({"spec": {"failurePolicy": {"rules": [{"name": "a", "action": "FailJob",
        "onExitCodes": [1], "onReasons": []}]}}})",
     true},
    {"failure rule twice",
     R"({"spec": {"failurePolicy": {"rules": [
        {"name": "a", "action": "FailJob", "onExitCodes": [1]},
        {"name": "a", "action": "FailJob", "onExitCodes": [2]}]}}})",
     false},
    {"a server is not replaced alone",
     R"({"spec": {"failurePolicy": {"rules": [{"name": "a", "action": "ReplacePod",
        "onExitCodes": [1]}]}}})",
     false},
    {"a worker is",
     R"({"spec": {"failurePolicy": {"rules": [{"name": "a", "action": "ReplacePod",
        "role": "Worker", "onExitCodes": [1]}]}}})",
     true},
    {"templates",
     R"({"spec": {"workers": {"template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "worker", "resources": {"limits": {"cpu": 2}}}]}}},
        "server": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}})",
     true},
    {"an empty template", R"({"spec": {"server": {"template": {}}}})", true},
    {"a template's unknown member", R"({"spec": {"server": {"template": {"status": {}}}}})", false},
    {"a template's unknown member beside spec",
     R"({"spec": {"server": {"template": {"spec": {}, "status": {}}}}})", false},
    {"a template's name", R"({"spec": {"server": {"template": {"metadata": {"name": "a"}}}}})",
     false},
    {"a template's label that is a number",
     R"({"spec": {"server": {"template": {"metadata": {"labels": {"a": 1}}}}}})", false},
    {"no spec", R"({"spec": null})", false},
    {"unknown member of the job", R"({"specification": {}})", false},
    {"a name in capitals", R"({"metadata": {"name": "Job"}})", false},
    {"a name that starts with a digit", R"({"metadata": {"name": "1job"}})", false},
    {"a name of 49 characters",
     R"({"metadata": {"name": "a234567890123456789012345678901234567890123456789"}})", false},
    {"a name with a dot", R"({"metadata": {"name": "job.two"}})", false},
};

}  // namespace

std::string errors_of(const Json& object) {
  ParseResult read = parse_training_job(object.dump());
  if (!read.errors.empty()) return to_string(read.errors);
  apply_defaults(read.job);
  return to_string(validate(read.job));
}

std::vector<Case> base_jobs() {
  const auto folder = std::filesystem::path(OUTRIGGER_SOURCE_DIR) / "tests/unit/api";
  const ParseResult every = parse_training_job(read_file(folder / "every_field.yaml"));
  ensure(every.errors.empty(), "tests/unit/api/every_field.yaml is a job");
  std::vector<Case> jobs{{"shortest", Json::parse(kShortest), true},
                         {"every field", to_json(every.job), true}};
  for (const auto& [what, patch] :
       {std::pair{"layers", kLayers}, std::pair{"schedule", kSchedule}}) {
    Json object = Json::parse(kShortest);
    object.merge_patch(Json::parse(patch));
    jobs.push_back({what, std::move(object), true});
  }
  return jobs;
}

std::vector<Case> rule_cases() {
  std::vector<Case> cases;
  for (const Row& row : kRules) {
    Json object = Json::parse(kShortest);
    object.merge_patch(Json::parse(row.patch));
    cases.push_back({row.what, std::move(object), row.good});
  }
  return cases;
}

}  // namespace outrigger::api
