// Later versions of the definition only add: what was a valid TrainingJob stays one, and means what
// it meant. Rules in CEL are not compared.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "api/crd.h"
#include "common/file.h"

namespace outrigger::api {
namespace {

using FieldJson = nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

/// What the schema says of each field by itself, by its path: "spec.training.batchSize".
using FieldTable = std::map<std::string, FieldJson>;

void flatten(const FieldJson& schema, const std::string& path, FieldTable& fields) {
  FieldJson own = schema;
  for (const char* part :
       {"description", "properties", "items", "additionalProperties", "x-kubernetes-validations"})
    own.erase(part);
  fields[path] = std::move(own);
  if (schema.contains("properties")) {
    for (const auto& [name, member] : schema["properties"].items())
      flatten(member, std::string(path).append(".").append(name), fields);
  }
  if (schema.contains("items")) flatten(schema["items"], path + "[]", fields);
  if (schema.contains("additionalProperties"))
    flatten(schema["additionalProperties"], path + "{}", fields);
}

FieldTable present_fields() {
  const FieldJson definition = FieldJson::parse(custom_resource_definition().dump());
  const FieldJson& root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
  FieldTable fields;
  for (const char* part : {"spec", "status"}) flatten(root["properties"][part], part, fields);
  return fields;
}

// One line a field, so that a difference names it.
std::string text_of(const FieldTable& fields) {
  std::string text;
  for (const auto& [path, field] : fields) text += path + " " + field.dump() + "\n";
  return text;
}

FieldTable fields_of(const std::string& text) {
  FieldTable fields;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    fields[line.substr(0, space)] = FieldJson::parse(line.substr(space));
  }
  return fields;
}

bool has_all(const FieldJson& list, const FieldJson& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const FieldJson& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  });
}

// Whether a bound lets through all that it let through before; `sign` 1: it is a lower one.
bool is_as_wide(const FieldJson& before, const FieldJson& after, const std::string& bound,
                const std::string& exclusive, int sign) {
  if (!after.contains(bound)) return true;
  if (!before.contains(bound)) return false;
  const double was = sign * before[bound].get<double>();
  const double is = sign * after[bound].get<double>();
  const bool shut =
      !exclusive.empty() && after.value(exclusive, false) && !before.value(exclusive, false);
  return is < was || (is == was && !shut);
}

bool are_bounds_as_wide(const FieldJson& before, const FieldJson& after) {
  bool wide = is_as_wide(before, after, "minimum", "exclusiveMinimum", 1) &&
              is_as_wide(before, after, "maximum", "exclusiveMaximum", -1);
  for (const char* what : {"Length", "Items", "Properties"}) {
    wide = wide && is_as_wide(before, after, std::string("min") + what, "", 1) &&
           is_as_wide(before, after, std::string("max") + what, "", -1);
  }
  return wide;
}

// An object's default may say more: what fields that are new are by default.
bool is_default_kept(const FieldJson& before, const FieldJson& after) {
  if (!before.is_object() || !after.is_object()) return before == after;
  FieldJson merged = after;
  merged.update(before);
  return merged == after;
}

/// What of a field would refuse, or mean otherwise, what was written before; empty: nothing.
std::string broken_by(const FieldJson& before, const FieldJson& after) {
  const auto differs = [&](const char* part) {
    return before.value(part, FieldJson()) != after.value(part, FieldJson());
  };
  for (const char* part : {"type", "format", "nullable", "x-kubernetes-list-type",
                           "x-kubernetes-list-map-keys", "x-kubernetes-map-type"}) {
    if (differs(part)) return part;
  }
  if (!is_default_kept(before.value("default", FieldJson()), after.value("default", FieldJson())))
    return "default";
  const auto list = [](const FieldJson& field, const char* part) {
    return field.value(part, FieldJson::array());
  };
  if (after.contains("enum") &&
      !(before.contains("enum") && has_all(after["enum"], before["enum"])))
    return "enum";
  if (!has_all(list(before, "required"), list(after, "required"))) return "required";
  if (after.contains("pattern") && differs("pattern")) return "pattern";
  if (before.contains("x-kubernetes-preserve-unknown-fields") &&
      differs("x-kubernetes-preserve-unknown-fields"))
    return "x-kubernetes-preserve-unknown-fields";
  return are_bounds_as_wide(before, after) ? "" : "bounds";
}

std::vector<std::string> breaks_between(const FieldTable& before, const FieldTable& after) {
  std::vector<std::string> breaks;
  for (const auto& [path, field] : before) {
    const auto now = after.find(path);
    const std::string what = now == after.end() ? "is gone" : broken_by(field, now->second);
    if (!what.empty()) breaks.push_back(std::string(path).append(": ").append(what));
  }
  return breaks;
}

TEST(CrdCompatible, WhatWasValidBeforeIsValidAndMeansTheSame) {
  const auto path =
      std::filesystem::path(OUTRIGGER_SOURCE_DIR) / "tests/unit/api/released_fields.txt";
  if (std::getenv("OUTRIGGER_RELEASE_FIELDS") != nullptr)
    write_file_atomically(path, text_of(present_fields()));
  EXPECT_THAT(breaks_between(fields_of(read_file(path)), present_fields()), IsEmpty())
      << "a release, and nothing else, writes the file anew (OUTRIGGER_RELEASE_FIELDS=1)";
}

TEST(CrdCompatible, ItIsSeenWhereAFieldIsGoneOrTakesLess) {
  const auto broken = broken_by;
  const FieldJson any = FieldJson::object();
  EXPECT_THAT(breaks_between({{"spec.a", any}, {"spec.b", any}}, {{"spec.b", any}}),
              ElementsAre("spec.a: is gone"));
  EXPECT_EQ(broken({{"type", "integer"}}, {{"type", "string"}}), "type");
  EXPECT_EQ(broken({{"default", 1}}, {{"default", 2}}), "default");
  EXPECT_EQ(broken(any, {{"default", 2}}), "default");
  EXPECT_EQ(broken({{"enum", {"a", "b"}}}, {{"enum", {"b"}}}), "enum");
  EXPECT_EQ(broken(any, {{"enum", {"b"}}}), "enum");
  EXPECT_EQ(broken({{"required", {"a"}}}, {{"required", {"a", "b"}}}), "required");
  EXPECT_EQ(broken(any, {{"pattern", "a"}}), "pattern");
  EXPECT_EQ(broken({{"minimum", 1}}, {{"minimum", 2}}), "bounds");
  EXPECT_EQ(broken({{"minimum", 1}}, {{"minimum", 1}, {"exclusiveMinimum", true}}), "bounds");
  EXPECT_EQ(broken({{"maximum", 3}}, {{"maximum", 2}}), "bounds");
  EXPECT_EQ(broken(any, {{"maxLength", 9}}), "bounds");
  EXPECT_EQ(broken({{"maxItems", 9}}, {{"maxItems", 8}}), "bounds");
}

TEST(CrdCompatible, WhatOnlyLetsInMoreIsNoBreak) {
  const FieldJson any = FieldJson::object();
  EXPECT_THAT(breaks_between({{"spec.b", any}}, {{"spec.a", any}, {"spec.b", any}}), IsEmpty());
  EXPECT_EQ(broken_by({{"default", {{"a", 1}}}}, {{"default", {{"a", 1}, {"b", 2}}}}), "");
  EXPECT_EQ(broken_by({{"enum", {"a"}}}, {{"enum", {"b", "a"}}}), "");
  EXPECT_EQ(broken_by({{"required", {"a", "b"}}}, {{"required", {"b"}}}), "");
  EXPECT_EQ(broken_by({{"minimum", 1}, {"maximum", 3}, {"pattern", "a"}},
                      {{"minimum", 0}, {"maximum", 3}}),
            "");
  EXPECT_EQ(broken_by({{"minimum", 1}, {"exclusiveMinimum", true}}, {{"minimum", 1}}), "");
}

}  // namespace
}  // namespace outrigger::api
