#include "api/crd/change.h"

#include <map>
#include <optional>
#include <string>

#include "api/crd/rules.h"
#include "common/error.h"

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
std::string same(const Field& field, const std::string& path) {
  const std::string now = "self" + path;
  const std::string before = "oldSelf" + path;
  std::string rule = now + " == " + before;
  if (holds_template(field)) rule += " && " + before + " == " + now;
  return rule;
}

std::string equal(const Field& field, const std::string& path) {
  if (is_always_there(field)) return same(field, path);
  const std::string now = "has(self" + path + ")";
  return now + " == has(oldSelf" + path + ") && (!" + now + " || (" + same(field, path) + "))";
}

using Rules = std::map<std::string, Json>;

constexpr const char* kNever = "may not be changed";
constexpr const char* kOnlySuspended = "may be changed only while the job is suspended";

/// `path` is the object's below spec.
void add_rules(const schema::Object& object, const std::string& path, Change inherited,
               Rules& rules) {
  for (const Field& field : object.fields) {
    const std::string inner = path + "." + field.name;
    const Change own = field.change.value_or(inherited);
    const auto change = change_of_all(field, own);
    if (!change) {
      ensure(is_always_there(field), "an object whose fields differ in when they may be changed");
      add_rules(*field.object, inner, own, rules);
    } else if (*change == Change::kWhileSuspended) {
      rules["spec"].push_back(
          cel_rule("oldSelf.suspend || (" + equal(field, inner) + ")", kOnlySuspended, inner));
    } else if (*change == Change::kNever && is_always_there(field)) {
      rules["spec" + inner].push_back(cel_rule(same(field, ""), kNever));
    } else if (*change == Change::kNever) {
      const std::string member = "." + field.name;
      rules["spec" + path].push_back(cel_rule(equal(field, member), kNever, member));
    }
  }
}

const schema::Object& spec() { return *schema::training_job().find("spec")->object; }

Rules make_rules() {
  Rules rules;
  add_rules(spec(), "", Change::kNever, rules);
  // CEL takes no notice of the order of a list whose items are told apart by their names.
  for (const char* list : {"spec.model.layers", "spec.failurePolicy.rules"})
    rules[list].push_back(cel_rule("self.map(x, x.name) == oldSelf.map(x, x.name)", kNever));
  return rules;
}

}  // namespace

Json change_rules(const std::string& path) {
  static const Rules rules = make_rules();
  const auto found = rules.find(path);
  return found == rules.end() ? Json::array() : found->second;
}

// What may never be changed has its own rules.
Json end_rule() {
  std::string kept;
  for (const Field& field : spec().fields) {
    const auto change = change_of_all(field, field.change.value_or(Change::kNever));
    if (change == Change::kNever || change == Change::kEvenEnded) continue;
    kept += (kept.empty() ? "(" : " && (") + equal(field, ".spec." + field.name) + ")";
  }
  return cel_rule("!has(oldSelf.status) || !has(oldSelf.status.completionTime) || (" + kept + ")",
                  "the job has ended; its spec is what was run", ".spec");
}

}  // namespace outrigger::api::crd
