#include "api/schema.h"
#include "corpus.h"

namespace outrigger::api {
namespace {

using schema::Field;
using schema::Kind;

/// Changes one place of a job at a time and puts it back.
class Mutator {
 public:
  Mutator(const Case& base, std::vector<Case>& cases) : job_(base), cases_(cases) {}

  void mutate_all() {
    const Field* spec = schema::training_job().find("spec");
    object(job_.object["spec"], *spec->object, "spec");
  }

 private:
  void note(const std::string& what) {
    const bool good = errors_of(job_.object).empty();
    cases_.push_back({job_.what + ": " + what, job_.object, good});
  }

  void put(Json& place, const Json& value, const std::string& what) {
    Json before = std::move(place);
    place = value;
    note(what);
    place = std::move(before);
  }

  void object(Json& place, const schema::Object& fields, const std::string& path) {
    place["nonsense"] = 1;
    note(path + " with an unknown member");
    place.erase("nonsense");
    for (const Field& field : fields.fields) {
      if (!place.contains(field.name)) continue;
      const std::string inner = path + "." + field.name;
      const Json before = place;
      place.erase(field.name);
      note(inner + " left out");
      place = before;
      value(place[field.name], field, field.kind, inner);
    }
  }

  void value(Json& place, const Field& field, Kind kind, const std::string& path) {
    put(place, kind == Kind::kObject || kind == Kind::kJson ? Json(7) : Json::object(),
        path + " of another type");
    switch (kind) {
      case Kind::kInteger:
      case Kind::kSeconds:
      case Kind::kNumber:
        return number(place, field, kind, path);
      case Kind::kText:
      case Kind::kEnum:
        return text(place, field, path);
      case Kind::kBoolean:
        return put(place, "true", path + " as text");
      case Kind::kObject:
        return object(place, *field.object, path);
      case Kind::kList:
        return list(place, field, path);
      default:
        return;
    }
  }

  void number(Json& place, const Field& field, Kind kind, const std::string& path) {
    const double step = kind == Kind::kNumber ? 0.001 : 1;
    const auto as_is = [&](double number) {
      return kind == Kind::kNumber ? Json(number) : Json(static_cast<int64_t>(number));
    };
    put(place, "1", path + " as text");
    if (field.minimum) put(place, as_is(*field.minimum), path + " at its minimum");
    if (field.minimum) put(place, as_is(*field.minimum - step), path + " below its minimum");
    if (field.maximum) put(place, as_is(*field.maximum), path + " at its maximum");
    if (field.maximum) put(place, as_is(*field.maximum + step), path + " above its maximum");
    if (kind != Kind::kNumber) put(place, 1.5, path + " with a fraction");
  }

  void text(Json& place, const Field& field, const std::string& path) {
    put(place, "", path + " empty");
    put(place, "Non sense!", path + " of another form");
    put(place, 7, path + " as number");
    if (!field.values.empty()) return;
    std::string longest = place.get<std::string>();
    while (longest.size() < field.longest_text) longest += 'a';
    put(place, longest, path + " as long as may be");
    put(place, longest + "a", path + " too long");
  }

  void list(Json& place, const Field& field, const std::string& path) {
    put(place, Json::array(), path + " empty");
    if (place.empty()) return;
    Json many = Json::array();
    while (many.size() <= field.most_items) many.push_back(place[0]);
    put(place, many, path + " too long");
    for (size_t i = 0; i < place.size(); ++i)
      value(place[i], field, field.item, path + "[" + std::to_string(i) + "]");
  }

  Case job_;
  std::vector<Case>& cases_;
};

}  // namespace

std::vector<Case> field_cases(const std::vector<Case>& bases) {
  std::vector<Case> cases;
  for (const Case& base : bases) Mutator(base, cases).mutate_all();
  return cases;
}

}  // namespace outrigger::api
