#include "api/crd/change.h"

#include <optional>
#include <string>

#include "api/crd/rules.h"

namespace outrigger::api::crd {
namespace {

using Json = nlohmann::ordered_json;
using schema::Change;
using schema::Field;
using schema::Kind;

bool is_always_there(const Field& field) {
  return field.required || field.default_value.has_value() ||
         (field.kind == Kind::kObject && field.absent.empty());
}

bool holds_template(const Field& field) {
  if (field.kind == Kind::kJson) return true;
  if (field.object == nullptr) return false;
  for (const Field& member : field.object->fields) {
    if (holds_template(member)) return true;
  }
  return false;
}

/// The one Change that holds for the field and all that is in it; nothing where they differ.
std::optional<Change> change_of_all(const Field& field, Change change) {
  if (field.object == nullptr) return change;
  for (const Field& member : field.object->fields) {
    if (change_of_all(member, member.change.value_or(change)) != change) return std::nullopt;
  }
  return change;
}

/// Asked both ways where there is a template: CEL passes over a member that only the right side
/// has and no schema knows.
std::string equal(const Field& field, const std::string& path) {
  const std::string now = "self" + path;
  const std::string before = "oldSelf" + path;
  std::string same = now + " == " + before;
  if (holds_template(field)) same += " && " + before + " == " + now;
  if (is_always_there(field)) return same;
  return "has(" + now + ") == has(" + before + ") && (!has(" + now + ") || (" + same + "))";
}

void add_rules(const schema::Object& object, const std::string& path, Change inherited,
               Json& rules) {
  for (const Field& field : object.fields) {
    const std::string inner = path + "." + field.name;
    const Change own = field.change.value_or(inherited);
    const auto change = change_of_all(field, own);
    if (!change) {
      add_rules(*field.object, inner, own, rules);
    } else if (*change == Change::kNever) {
      rules.push_back(cel_rule(equal(field, inner), "may not be changed", inner));
    } else if (*change == Change::kWhileSuspended) {
      rules.push_back(cel_rule("oldSelf.suspend || (" + equal(field, inner) + ")",
                               "may be changed only while the job is suspended", inner));
    }
  }
}

}  // namespace

Json change_rules(const schema::Object& spec) {
  Json rules = Json::array();
  add_rules(spec, "", Change::kNever, rules);
  // CEL takes no notice of the order of a list whose items are told apart by their names.
  for (const char* list : {"model.layers", "failurePolicy.rules"}) {
    const std::string path = "." + std::string(list);
    const std::string now = "self" + path;
    const std::string before = "oldSelf" + path;
    std::string rule = "!has(";
    rule.append(now).append(") || !has(").append(before).append(") || ").append(now);
    rule.append(".map(x, x.name) == ").append(before).append(".map(x, x.name)");
    rules.push_back(cel_rule(rule, "may not be changed", path));
  }
  return rules;
}

}  // namespace outrigger::api::crd
