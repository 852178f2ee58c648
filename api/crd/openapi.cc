#include "api/crd/openapi.h"

#include "api/crd/change.h"
#include "api/crd/rules.h"

namespace outrigger::api::crd {
namespace {

using Json = nlohmann::ordered_json;
using schema::Field;
using schema::Kind;

// A number without a fraction is written as a whole one: 1 and not 1.0.
Json plain_number(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

void add_bounds(const Field& field, Json& schema) {
  if (field.minimum) schema["minimum"] = plain_number(*field.minimum);
  if (field.minimum && field.above_minimum) schema["exclusiveMinimum"] = true;
  if (field.maximum) schema["maximum"] = plain_number(*field.maximum);
  if (field.maximum && field.below_maximum) schema["exclusiveMaximum"] = true;
}

Json text_schema(const Field& field) {
  Json schema{{"type", "string"}};
  if (!field.values.empty()) {
    schema["enum"] = field.values;
    return schema;
  }
  if (field.least_text > 0) schema["minLength"] = field.least_text;
  schema["maxLength"] = field.longest_text;
  if (field.text_rule == nullptr) return schema;
  std::string pattern = "^(" + std::string(field.text_rule->regex) + ")$";
  if (field.least_text == 0) pattern = "^$|" + pattern;
  schema["pattern"] = std::move(pattern);
  return schema;
}

Json text_map_schema(const Field& field) {
  return {{"type", "object"},
          {"additionalProperties", text_schema(field)},
          {"maxProperties", field.most_items}};
}

/// What api/rules.cc says of a template: no other members than metadata, with labels and
/// annotations, and spec. spec is the cluster's own to judge when pods are made, so that new fields
/// of pods need no new CRD. Members are told by their number and not by a closed list of
/// properties, because CEL compares a member that the schema does not know as a whole, and one that
/// it does know with holes for the unknown inside of it.
Json template_schema() {
  const Json texts{{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  const auto only = [](const std::vector<std::string>& names) {
    Json row = Json::object();
    const size_t count = names.size();
    if (count > 0) row["required"] = names;
    row["maxProperties"] = count;
    return row;
  };
  const Json metadata{{"type", "object"},
                      {"properties", {{"labels", texts}, {"annotations", texts}}}};
  return {{"type", "object"},
          {"x-kubernetes-preserve-unknown-fields", true},
          {"properties", {{"metadata", metadata}}},
          {"anyOf", {only({}), only({"metadata"}), only({"spec"}), only({"metadata", "spec"})}}};
}

/// Layers are many, and comparing each name with each other costs more than CEL may; the keys of a
/// list of this type are unique. Conditions merge by their type.
void add_list_keys(const Field& field, Json& schema) {
  if (field.object == nullptr) return;
  for (const char* key : {"name", "type"}) {
    const Field* member = field.object->find(key);
    if (member == nullptr || !member->required) continue;
    schema["x-kubernetes-list-type"] = "map";
    schema["x-kubernetes-list-map-keys"] = {key};
    return;
  }
}

Json value_schema(Kind kind, const Field& field, const std::string& path, Defaults defaults);

Json list_schema(const Field& field, const std::string& path, Defaults defaults) {
  Json schema{{"type", "array"},
              {"items", value_schema(field.item, field, path + "[]", defaults)},
              {"maxItems", field.most_items}};
  add_list_keys(field, schema);
  return schema;
}

Json value_schema(Kind kind, const Field& field, const std::string& path, Defaults defaults) {
  switch (kind) {
    case Kind::kBoolean:
      return {{"type", "boolean"}};
    case Kind::kInteger:
    case Kind::kSeconds: {
      Json schema{{"type", "integer"}, {"format", "int64"}};
      add_bounds(field, schema);
      return schema;
    }
    case Kind::kNumber: {
      Json schema{{"type", "number"}};
      add_bounds(field, schema);
      return schema;
    }
    case Kind::kText:
    case Kind::kEnum:
      return text_schema(field);
    case Kind::kTime:
      return {{"type", "string"}, {"format", "date-time"}};
    case Kind::kTextMap:
      return text_map_schema(field);
    case Kind::kJson:
      return template_schema();
    case Kind::kObject:
      return object_schema(*field.object, path, defaults);
    case Kind::kList:
      return list_schema(field, path, defaults);
  }
  return Json::object();
}

// An object whose absence means nothing of its own is made, so that its members get their defaults.
bool is_made_when_absent(const Field& field) {
  return field.kind == Kind::kObject && !field.required && !field.alternative &&
         field.absent.empty();
}

// With all that is in it: an API server asks the rules of a default as it is written.
Json default_of(const schema::Object& object) {
  Json result = Json::object();
  for (const Field& field : object.fields) {
    if (field.default_value) result[field.name] = *field.default_value;
    if (is_made_when_absent(field)) result[field.name] = default_of(*field.object);
  }
  return result;
}

std::string description_of(const Field& field) {
  return field.absent.empty() ? field.doc : field.doc + " Absent: " + field.absent + ".";
}

Json field_schema(const Field& field, const std::string& path, Defaults defaults) {
  Json schema{{"description", description_of(field)}};
  schema.update(value_schema(field.kind, field, path, defaults));
  if (defaults == Defaults::kLeftOut) return schema;
  // An object's stand with its own (rules_at()).
  if (Json rules = change_rules(path); field.kind != Kind::kObject && !rules.empty())
    schema["x-kubernetes-validations"] = std::move(rules);
  if (field.default_value) schema["default"] = *field.default_value;
  if (is_made_when_absent(field)) schema["default"] = default_of(*field.object);
  return schema;
}

}  // namespace

Json object_schema(const schema::Object& object, const std::string& path, Defaults defaults) {
  Json schema{{"type", "object"}};
  Json properties = Json::object();
  std::vector<std::string> required;
  for (const Field& field : object.fields) {
    properties[field.name] = field_schema(field, path + "." + field.name, defaults);
    if (field.required) required.push_back(field.name);
  }
  if (!required.empty()) schema["required"] = std::move(required);
  if (!properties.empty()) schema["properties"] = std::move(properties);
  // The operator writes what a status is made of as wholes, and who owns each number in it is
  // nothing to keep: an API server would work that out anew at every write.
  if (path.starts_with("status.")) schema["x-kubernetes-map-type"] = "atomic";
  Json rules = rules_at(path, object);
  if (!rules.empty()) schema["x-kubernetes-validations"] = std::move(rules);
  return schema;
}

}  // namespace outrigger::api::crd
