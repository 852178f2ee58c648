#include "api/crd/rules.h"

#include "api/crd/change.h"

namespace outrigger::api::crd {
namespace {

using Json = nlohmann::ordered_json;
using schema::Field;

/// A rule over several fields of the object at `path`. Each row says what a line of api/rules.cc
/// says; tests/integration/api holds the two to one verdict. That a layer's inputs stand before it
/// is not here: with 1024 layers it costs more than an API server lets a rule cost, so that the
/// operator says it.
struct Row {
  const char* path;
  const char* field;
  const char* rule;
  const char* message;
};

constexpr Row kRows[] = {
    {"spec.model", "", "has(self.name) != (has(self.layers) && self.layers.size() > 0)",
     "exactly one of name and layers is needed"},
    {"spec.model", ".replaceHead", "!self.replaceHead || has(self.weights)",
     "true needs weights: without them the classifier starts anew in any case"},
    {"spec.model.layers[]", ".name", "self.name != 'input'", "\"input\" is the image"},
    {"spec.model.layers[]", ".inputs",
     "!has(self.add) || (has(self.inputs) && self.inputs.size() == 2)",
     "an add layer needs exactly 2 inputs"},
    {"spec.model.layers[]", ".inputs",
     "has(self.add) || !has(self.inputs) || self.inputs.size() < 2",
     "only an add layer has several inputs"},
    {"spec.data.train", "", "has(self.path) != (has(self.urls) && self.urls.size() > 0)",
     "exactly one of path and urls is needed"},
    {"spec.data.train", ".urls",
     "!has(self.urls) || self.urls.size() == 0 || self.format == 'WebDataset'",
     "only format WebDataset is read from addresses"},
    {"spec.data.validation", "", "has(self.path) != (has(self.urls) && self.urls.size() > 0)",
     "exactly one of path and urls is needed"},
    {"spec.data.validation", ".urls",
     "!has(self.urls) || self.urls.size() == 0 || self.format == 'WebDataset'",
     "only format WebDataset is read from addresses"},
    {"spec.data", ".train",
     "!has(self.volumeClaimName) || !has(self.train.path) || self.train.path == '/data' || "
     "self.train.path.startsWith('/data/')",
     "path is not on the volume; volumeClaimName is mounted at /data"},
    {"spec.data", ".validation",
     "!has(self.volumeClaimName) || !has(self.validation) || !has(self.validation.path) || "
     "self.validation.path == '/data' || self.validation.path.startsWith('/data/')",
     "path is not on the volume; volumeClaimName is mounted at /data"},
    {"spec.data.image", ".channels", "self.channels != 2", "1 (grey) or 3 (colour) is needed"},
    {"spec.data.augment[].randomResizedCrop", ".minScale", "self.minScale >= 0.0001",
     "at least 0.0001"},
    {"spec.data.augment[].randomResizedCrop", ".minRatio", "self.minRatio >= 0.1", "at least 0.1"},
    {"spec.data.augment[].randomResizedCrop", ".maxRatio", "self.maxRatio <= 10.0", "at most 10"},
    {"spec.data.augment[].randomResizedCrop", ".minScale", "self.minScale <= self.maxScale",
     "at most maxScale"},
    {"spec.data.augment[].randomResizedCrop", ".minRatio", "self.minRatio <= self.maxRatio",
     "at most maxRatio"},
    {"spec.data.augment[].randomErasing", ".minArea", "self.minArea >= 0.0001", "at least 0.0001"},
    {"spec.data.augment[].randomErasing", ".minRatio", "self.minRatio >= 0.1", "at least 0.1"},
    {"spec.data.augment[].randomErasing", ".maxRatio", "self.maxRatio <= 10.0", "at most 10"},
    {"spec.data.augment[].randomErasing", ".minArea", "self.minArea <= self.maxArea",
     "at most maxArea"},
    {"spec.data.augment[].randomErasing", ".minRatio", "self.minRatio <= self.maxRatio",
     "at most maxRatio"},
    {"spec.training", "", "has(self.epochs) != has(self.steps)",
     "exactly one of epochs and steps is needed"},
    {"spec.training.schedule.step", ".atSteps", "self.atSteps.size() > 0",
     "at least one step is needed"},
    {"spec.training.schedule.step", ".atSteps",
     "self.atSteps.isSorted() && self.atSteps.all(x, self.atSteps.exists_one(y, y == x))",
     "the steps are not ascending"},
    {"spec.training.schedule.cosine", ".final", "!has(self.final) || self.final <= self.base",
     "at most base"},
    {"spec.training.optimizer.sgd", ".nesterov", "!self.nesterov || self.momentum > 0.0",
     "true needs momentum above 0"},
    {"spec", ".training.batchSize",
     "self.training.batchSize % (self.server.replicas * (self.server.gpus > 0 ? self.server.gpus : "
     "1) * (has(self.training.microBatchSize) ? self.training.microBatchSize : 1)) == 0",
     "not a multiple of ranks x microBatchSize (ranks: server.replicas x max(1, server.gpus))"},
    {"spec", ".training", "!has(self.training.evaluate) || has(self.data.validation)",
     "there is nothing to evaluate on; give data.validation"},
    {"spec.training.evaluate", ".place", "!has(self.stopAfterNoGain) || self.place != 'Workers'",
     "Workers cannot be with stopAfterNoGain: results that come later would end each run at "
     "another "
     "step"},
    {"spec.split", ".maxBytesPerSecond",
     "!has(self.maxBytesPerSecond) || self.cut == 'Auto' || (self.cut != 'Input' && "
     "!has(self.sharePercent))",
     "bounds plans that are found, and there is nothing to find; write cut: Auto, or a layer "
     "without "
     "sharePercent"},
    {"spec.workers", ".minReplicas", "self.minReplicas <= self.replicas", "at most replicas"},
    {"spec.workers", ".replicas", "!has(self.maxReplicas) || self.replicas <= self.maxReplicas",
     "at most maxReplicas"},
    {"spec.workers", ".autoscaling", "!has(self.autoscaling) || has(self.maxReplicas)",
     "needs maxReplicas, so that the number of workers has a bound"},
    {"spec.output", ".path", "!has(self.volumeClaimName) || self.path.startsWith('/')",
     "a volume is mounted at a path that begins with /"},
    {"spec.checkpoint", ".volumeClaimName", "!has(self.volumeClaimName) || has(self.path)",
     "needs path, where the volume is mounted"},
    {"spec.checkpoint", ".path",
     "!has(self.volumeClaimName) || !has(self.path) || self.path.startsWith('/')",
     "a volume is mounted at a path that begins with /"},
    {"spec.failurePolicy.rules[]", "",
     "[has(self.onExitCodes) && self.onExitCodes.size() > 0, has(self.onPodConditions) && "
     "self.onPodConditions.size() > 0, has(self.onReasons) && self.onReasons.size() > 0]"
     ".exists_one(given, given)",
     "exactly one of onExitCodes, onPodConditions and onReasons is needed"},
    {"spec.failurePolicy.rules[]", ".action",
     "self.action != 'ReplacePod' || (has(self.role) && self.role == 'Worker')",
     "ReplacePod needs role Worker; servers restart together"},
};

// Of the alternatives exactly one is given.
void add_alternatives(const schema::Object& object, Json& rules) {
  if (!object.has_alternatives()) return;
  std::string given;
  std::string names;
  for (const Field& field : object.fields) {
    if (!field.alternative) continue;
    given += (given.empty() ? "has(self." : ", has(self.") + field.name + ")";
    names += (names.empty() ? "" : ", ") + field.name;
  }
  rules.push_back(
      cel_rule("[" + given + "].exists_one(given, given)", "exactly one is needed of " + names));
}

}  // namespace

Json cel_rule(const std::string& rule, const std::string& message, const std::string& field) {
  Json result{{"rule", rule}, {"message", message}};
  if (!field.empty()) result["fieldPath"] = field;
  return result;
}

Json rules_at(const std::string& path, const schema::Object& object) {
  Json rules = Json::array();
  add_alternatives(object, rules);
  for (const Row& row : kRows) {
    if (path == row.path) rules.push_back(cel_rule(row.rule, row.message, row.field));
  }
  for (Json& rule : change_rules(path)) rules.push_back(std::move(rule));
  return rules;
}

Json root_rules() { return Json::array({end_rule()}); }

}  // namespace outrigger::api::crd
