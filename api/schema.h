#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The fields of a TrainingJob and the rules for each by itself, as data. This is their one source:
/// reading, checking, writing, docs/fields.md and the CRD come from it (the tables are
/// schema/fields_*.cc).
namespace outrigger::api::schema {

enum class Kind {
  kBoolean,
  kInteger,
  kNumber,  // a finite float64
  kText,
  kEnum,     // one of `values`
  kSeconds,  // a whole number of seconds
  kTime,     // RFC 3339
  kTextMap,  // names to texts
  kJson,     // kept as it is: a pod template
  kObject,
  kList,  // of `item`
};
std::string_view to_string(Kind kind);

/// When a field of a job that exists may be changed; of one that has ended nothing may but what is
/// kEvenEnded.
enum class Change { kNever, kWhileSuspended, kAlways, kEvenEnded };
std::string_view to_string(Change change);

/// A form that texts must have.
struct TextRule {
  std::string_view regex;    // RE2 and ECMAScript read it alike; matches the whole text
  std::string_view meaning;  // "a DNS label (lower-case letters, digits, -)"
};

inline constexpr size_t kLongestText = 1024;
inline constexpr size_t kMostItems = 1024;

struct Object;

/// One field. Static; valid for ever.
struct Field {
  std::string name;
  std::string doc;
  Kind kind = Kind::kText;
  Kind item = Kind::kText;  // of a list
  bool required = false;
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool above_minimum = false;  // the minimum itself is not allowed
  bool below_maximum = false;
  size_t least_text = 1;
  size_t longest_text = kLongestText;  // in bytes; of each item in a list or map
  size_t most_items = kMostItems;
  const TextRule* text_rule = nullptr;
  std::vector<std::string> values;
  std::optional<nlohmann::ordered_json> default_value;  // where it is a constant
  std::string absent;                                   // else what absence means
  std::optional<Change> change;                         // absent: as the object that holds it
  const Object* object = nullptr;                       // of kObject, or of a list's items
  bool alternative = false;  // exactly one of the object's alternatives must be there
};

/// The fields that an object may have, in the order in which they are written.
struct Object {
  std::vector<Field> fields;
  bool has_alternatives() const;
  const Field* find(std::string_view name) const;
};

/// The whole object: apiVersion, kind, metadata, spec, status.
const Object& training_job();

}  // namespace outrigger::api::schema
