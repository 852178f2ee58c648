#include "api/schema.h"

#include <algorithm>

namespace outrigger::api::schema {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kBoolean:
      return "boolean";
    case Kind::kInteger:
      return "integer";
    case Kind::kNumber:
      return "number";
    case Kind::kText:
      return "text";
    case Kind::kEnum:
      return "word";
    case Kind::kSeconds:
      return "seconds";
    case Kind::kTime:
      return "time";
    case Kind::kTextMap:
      return "map of texts";
    case Kind::kJson:
      return "any object";
    case Kind::kObject:
      return "object";
    case Kind::kList:
      return "list";
  }
  return "?";
}

std::string_view to_string(Change change) {
  switch (change) {
    case Change::kNever:
      return "never";
    case Change::kWhileSuspended:
      return "while suspended";
    case Change::kAlways:
      return "always";
    case Change::kEvenEnded:
      return "always, even then";
  }
  return "?";
}

bool Object::has_alternatives() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field& field) { return field.alternative; });
}

const Field* Object::find(std::string_view name) const {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

}  // namespace outrigger::api::schema
