#include "api/crd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "api/schema.h"
#include "common/file.h"

namespace outrigger::api {
namespace {

using Json = nlohmann::ordered_json;

const Json& version_of(const Json& definition) { return definition["spec"]["versions"][0]; }

const Json& root_of(const Json& definition) {
  return version_of(definition)["schema"]["openAPIV3Schema"];
}

/// Visits each schema of the tree with its path.
void for_each_schema(const Json& schema, const std::string& path,
                     const std::function<void(const std::string&, const Json&)>& visit) {
  visit(path, schema);
  if (schema.contains("properties")) {
    for (const auto& [name, member] : schema["properties"].items())
      for_each_schema(member, std::string(path).append(".").append(name), visit);
  }
  if (schema.contains("items")) for_each_schema(schema["items"], path + "[]", visit);
  if (schema.contains("additionalProperties"))
    for_each_schema(schema["additionalProperties"], path + "{}", visit);
}

std::vector<std::string> rules_below(const Json& schema) {
  std::vector<std::string> rules;
  for (const Json& rule : schema.value("x-kubernetes-validations", Json::array()))
    rules.push_back(rule.value("fieldPath", "") + ": " + rule["rule"].get<std::string>());
  return rules;
}

bool has_rule(const Json& schema, const std::string& text) {
  const auto rules = rules_below(schema);
  return std::find(rules.begin(), rules.end(), text) != rules.end();
}

TEST(Crd, TheChartHoldsWhatTheTablesSay) {
  const auto path =
      std::filesystem::path(OUTRIGGER_SOURCE_DIR) / "charts/outrigger/crds/trainingjobs.yaml";
  const std::string wanted = custom_resource_definition_yaml();
  if (std::getenv("OUTRIGGER_UPDATE_DOCS") != nullptr) write_file_atomically(path, wanted);
  EXPECT_EQ(read_file(path), wanted)
      << "run this test with OUTRIGGER_UPDATE_DOCS=1 to write the file anew";
}

TEST(Crd, ItFitsIntoTheAnnotationOfAClientSideApply) {
  EXPECT_LT(custom_resource_definition().dump().size(), 200u * 1024);
}

TEST(Crd, EveryFieldOfTheTablesHasASchemaWithADescription) {
  const Json definition = custom_resource_definition();
  const std::function<void(const schema::Object&, const Json&, const std::string&)> check =
      [&](const schema::Object& object, const Json& schema, const std::string& path) {
        for (const schema::Field& field : object.fields) {
          ASSERT_TRUE(schema["properties"].contains(field.name)) << path << "." << field.name;
          const Json& member = schema["properties"][field.name];
          EXPECT_EQ(member.value("description", "").find(field.doc), 0u) << path << field.name;
          if (field.object == nullptr) continue;
          check(*field.object, field.kind == schema::Kind::kList ? member["items"] : member,
                path + "." + field.name);
        }
      };
  for (const char* part : {"spec", "status"}) {
    check(*schema::training_job().find(part)->object, root_of(definition)["properties"][part],
          part);
  }
}

TEST(Crd, EveryTextListAndMapHasABoundSoThatRulesHaveACost) {
  const Json definition = custom_resource_definition();
  int bounded = 0;
  for (const char* part : {"spec", "status"}) {
    for_each_schema(root_of(definition)["properties"][part], part,
                    [&](const std::string& path, const Json& schema) {
                      if (path.find(".template") != std::string::npos) return;
                      const std::string type = schema.value("type", "");
                      const bool text = type == "string" && !schema.contains("enum") &&
                                        schema.value("format", "") != "date-time";
                      if (text) {
                        EXPECT_TRUE(schema.contains("maxLength")) << path;
                      }
                      if (type == "array") {
                        EXPECT_TRUE(schema.contains("maxItems")) << path;
                      }
                      if (schema.contains("additionalProperties")) {
                        EXPECT_TRUE(schema.contains("maxProperties")) << path;
                      }
                      bounded += text || type == "array" ? 1 : 0;
                    });
  }
  EXPECT_GT(bounded, 50);
}

TEST(Crd, OfAlternativesExactlyOneIsAskedFor) {
  const Json definition = custom_resource_definition();
  const Json& loss =
      root_of(definition)["properties"]["spec"]["properties"]["training"]["properties"]["loss"];
  EXPECT_TRUE(has_rule(
      loss, ": [has(self.softmaxCrossEntropy), has(self.arcFace)].exists_one(given, given)"));
}

TEST(Crd, WhatMayNotBeChangedCannotBeUnsetEither) {
  const Json definition = custom_resource_definition();
  const Json& spec = root_of(definition)["properties"]["spec"];
  EXPECT_TRUE(has_rule(spec["properties"]["model"], ": self == oldSelf"));
  EXPECT_TRUE(has_rule(spec["properties"]["managedBy"], ": self == oldSelf"));
  EXPECT_TRUE(has_rule(spec,
                       ".schedulingPolicy: oldSelf.suspend || (has(self.schedulingPolicy) == "
                       "has(oldSelf.schedulingPolicy) && (!has(self.schedulingPolicy) || "
                       "(self.schedulingPolicy == oldSelf.schedulingPolicy)))"));
  EXPECT_TRUE(has_rule(spec["properties"]["failurePolicy"],
                       ".rules: has(self.rules) == has(oldSelf.rules) && (!has(self.rules) || "
                       "(self.rules == oldSelf.rules))"));
  for (const std::string& rule : rules_below(spec)) {
    EXPECT_NE(rule.find(".split:"), 0u) << "split may be changed at any time";
    EXPECT_NE(rule.find(".workers.replicas: oldSelf"), 0u);
  }
  for (const std::string& rule : rules_below(spec["properties"]["split"]))
    EXPECT_EQ(rule.find("oldSelf"), std::string::npos) << rule;
}

TEST(Crd, AJobThatHasEndedKeepsAllButWhatBelongsToItsEnd) {
  const Json definition = custom_resource_definition();
  const Json& rules = root_of(definition)["x-kubernetes-validations"];
  ASSERT_EQ(rules.size(), 1u);
  const auto rule = rules[0]["rule"].get<std::string>();
  for (const char* kept :
       {"suspend", "split", "server", "workers", "schedulingPolicy", "failurePolicy",
        "activeDeadlineSeconds", "startupDeadlineSeconds", "progressDeadlineSeconds"})
    EXPECT_NE(rule.find(std::string("self.spec.") + kept + " == oldSelf.spec." + kept),
              std::string::npos)
        << kept << " in " << rule;
  for (const char* free : {"ttlSecondsAfterFinished", "cleanPodPolicy"})
    EXPECT_EQ(rule.find(free), std::string::npos) << rule;
}

TEST(Crd, PartsOfAStatusAreOwnedAsWholes) {
  const Json definition = custom_resource_definition();
  const Json& status = root_of(definition)["properties"]["status"];
  EXPECT_FALSE(status.contains("x-kubernetes-map-type")) << "others may own a condition";
  for (const char* part : {"workers", "progress", "split", "lastFailure"})
    EXPECT_EQ(status["properties"][part]["x-kubernetes-map-type"], "atomic") << part;
  const Json& conditions = status["properties"]["conditions"];
  EXPECT_EQ(conditions["x-kubernetes-list-type"], "map");
  EXPECT_EQ(conditions["items"]["x-kubernetes-map-type"], "atomic");
}

TEST(Crd, DefaultsAreWrittenIntoTheSpecAndNeverIntoTheStatus) {
  const Json definition = custom_resource_definition();
  const Json& spec = root_of(definition)["properties"]["spec"]["properties"];
  EXPECT_EQ(spec["workers"]["default"], Json::parse(R"({"replicas": 0, "minReplicas": 0})"));
  EXPECT_EQ(spec["workers"]["properties"]["replicas"]["default"], 0);
  EXPECT_EQ(spec["startupDeadlineSeconds"]["default"], 1800);
  EXPECT_FALSE(spec["schedulingPolicy"].contains("default"));
  for_each_schema(root_of(definition)["properties"]["status"], "status",
                  [](const std::string& path, const Json& schema) {
                    EXPECT_FALSE(schema.contains("default")) << path;
                  });
}

TEST(Crd, ScaleAndColumnsNameFieldsThatExist) {
  const Json definition = custom_resource_definition();
  const auto exists = [&](const std::string& path) {
    if (path.rfind(".metadata.", 0) == 0) return true;
    const Json* schema = &root_of(definition);
    for (size_t at = 0; at < path.size();) {
      const size_t end = std::min(path.find('.', at + 1), path.size());
      const std::string name = path.substr(at + 1, end - at - 1);
      if (!(*schema)["properties"].contains(name)) return false;
      schema = &(*schema)["properties"][name];
      at = end;
    }
    return true;
  };
  for (const Json& column : version_of(definition)["additionalPrinterColumns"])
    EXPECT_TRUE(exists(column["jsonPath"])) << column;
  for (const auto& [name, path] : version_of(definition)["subresources"]["scale"].items())
    EXPECT_TRUE(exists(path)) << name;
}

}  // namespace
}  // namespace outrigger::api
