#include "api/write.h"

#include "api/schema/fields.h"
#include "api/yaml_text.h"
#include "common/error.h"

namespace outrigger::api {

nlohmann::ordered_json to_json(const TrainingJob& job) {
  return schema::struct_of<TrainingJob>().write(&job);
}

nlohmann::ordered_json to_json(const TrainingJobStatus& status) {
  return schema::struct_of<TrainingJobStatus>().write(&status);
}

std::string to_json_text(const TrainingJob& job) { return to_json(job).dump(2) + "\n"; }

namespace {

using Json = nlohmann::ordered_json;

void leave_out_defaults(Json& value, const schema::Object& object);

void leave_out_within(Json& value, const schema::Field& field) {
  if (field.object == nullptr) return;
  if (field.kind == schema::Kind::kObject) return leave_out_defaults(value, *field.object);
  for (Json& item : value) leave_out_defaults(item, *field.object);
}

// Members stand in the order of the fields that they were written from. The others are gathered
// anew: to erase one would copy all behind it.
void leave_out_defaults(Json& value, const schema::Object& object) {
  auto& members = value.get_ref<Json::object_t&>();
  Json::object_t kept;
  kept.reserve(members.size());
  auto field = object.fields.begin();
  for (auto& [name, member] : members) {
    while (field != object.fields.end() && field->name != name) ++field;
    ensure(field != object.fields.end(), "a member that no field describes");
    if (field->default_value && member == *field->default_value) continue;
    leave_out_within(member, *field);
    kept.emplace_back(name, std::move(member));
  }
  members.swap(kept);
}

}  // namespace

nlohmann::ordered_json to_short_json(const TrainingJob& job) {
  Json object = to_json(job);
  leave_out_defaults(object, schema::training_job());
  return object;
}

std::string to_yaml(const TrainingJob& job) { return to_yaml_text(to_json(job)); }

}  // namespace outrigger::api
