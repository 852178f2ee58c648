#include "api/crd.h"
#include "api/crd/openapi.h"
#include "api/crd/rules.h"
#include "api/names.h"
#include "api/schema.h"
#include "api/yaml_text.h"
#include "common/error.h"

namespace outrigger::api {
namespace {

using Json = nlohmann::ordered_json;

const schema::Object& part(std::string_view name) {
  const schema::Field* field = schema::training_job().find(name);
  ensure(field != nullptr && field->object != nullptr, "a TrainingJob has this part");
  return *field->object;
}

// Kubernetes knows metadata itself; a schema may only narrow the name.
Json metadata_schema() {
  const schema::Field* name = part("metadata").find("name");
  ensure(name != nullptr && name->text_rule != nullptr, "a job's name has a form");
  return {{"type", "object"},
          {"properties",
           {{"name",
             {{"type", "string"},
              {"maxLength", name->longest_text},
              {"pattern", "^(" + std::string(name->text_rule->regex) + ")$"}}}}}};
}

Json described(std::string_view name, const Json& schema) {
  Json result{{"description", schema::training_job().find(name)->doc}};
  result.update(schema);
  return result;
}

Json root_schema() {
  return {{"description", "A network to train, split between a server and CPU workers."},
          {"type", "object"},
          {"required", {"spec"}},
          {"properties",
           {{"apiVersion", {{"type", "string"}}},
            {"kind", {{"type", "string"}}},
            {"metadata", metadata_schema()},
            {"spec",
             described("spec", crd::object_schema(part("spec"), "spec", crd::Defaults::kWritten))},
            {"status", described("status", crd::object_schema(part("status"), "status",
                                                              crd::Defaults::kLeftOut))}}},
          {"x-kubernetes-validations", crd::root_rules()}};
}

Json column(const char* name, const char* type, const char* path, const char* description,
            int priority = 0) {
  Json result{{"name", name}, {"type", type}, {"jsonPath", path}, {"description", description}};
  if (priority > 0) result["priority"] = priority;  // shown by -o wide
  return result;
}

Json columns() {
  return {
      column("State", "string", ".status.state", "What the job is doing"),
      column("Progress", "integer", ".status.progress.percent", "Per cent of the steps done"),
      column("Workers", "string", ".status.workers.summary", "Ready of desired"),
      column("Stall", "integer", ".status.split.stallPercent",
             "Per cent of the time in which the server's device waits"),
      column("Restarts", "integer", ".status.restarts", "Restarts that count"),
      column("Age", "date", ".metadata.creationTimestamp", "Time since the job was made"),
      column("ETA", "integer", ".status.progress.remainingSeconds", "Seconds left", 1),
      column("Plan", "integer", ".status.split.plan", "Number of the plan in force", 1),
      column("Queue", "string", ".spec.schedulingPolicy.queue", "Queue in which the job waits", 1),
  };
}

Json names() {
  return {{"kind", kKind},
          {"listKind", std::string(kKind) + "List"},
          {"plural", kPlural},
          {"singular", "trainingjob"},
          {"shortNames", {kShortName}},
          {"categories", {"outrigger"}}};
}

Json version() {
  return {{"name", kVersion},
          {"served", true},
          {"storage", true},
          {"schema", {{"openAPIV3Schema", root_schema()}}},
          {"subresources",
           {{"status", Json::object()},
            {"scale",
             {{"specReplicasPath", ".spec.workers.replicas"},
              {"statusReplicasPath", ".status.workers.replicas"},
              {"labelSelectorPath", ".status.workers.selector"}}}}},
          {"additionalPrinterColumns", columns()}};
}

}  // namespace

Json custom_resource_definition() {
  const std::string name = std::string(kPlural) + "." + std::string(kGroup);
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", name}, {"annotations", {{"helm.sh/resource-policy", "keep"}}}}},
          {"spec",
           {{"group", kGroup},
            {"scope", "Namespaced"},
            {"names", names()},
            {"versions", Json::array({version()})}}}};
}

std::string custom_resource_definition_yaml() {
  return "# Made from the tables in api/schema/ by `outrigger crd`; a test fails where this "
         "differs.\n" +
         to_yaml_text(custom_resource_definition());
}

}  // namespace outrigger::api
