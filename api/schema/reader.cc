#include "api/schema/reader.h"

#include <algorithm>

#include "api/schema/scalar.h"
#include "common/nearest.h"

namespace outrigger::api::schema {
namespace {

std::string describe(const TextNode& node) {
  switch (node.kind) {
    case TextNode::Kind::kNull:
      return "null";
    case TextNode::Kind::kList:
      return "a list";
    case TextNode::Kind::kMap:
      return "an object";
    case TextNode::Kind::kScalar:
      break;
  }
  if (!node.plain) return in_quotes(node.text) + " is text";
  switch (look_of(node.text)) {
    case Look::kBoolean:
      return node.text + " is a boolean";
    case Look::kInteger:
    case Look::kNumber:
      return node.text + " is a number";
    default:
      return in_quotes(node.text) + " is text";
  }
}

std::string wrong_type(const TextNode& node, std::string_view wanted) {
  std::string what = describe(node);
  if (node.kind != TextNode::Kind::kScalar) what += " stands here";
  return what + "; " + std::string(wanted) + " is needed";
}

constexpr std::string_view kNullMessage =
    "null is not allowed; leave the field out to leave it unset";

// A number that other readers take for something else: what to write instead is the user's to
// decide.
std::string ambiguous_number(const std::string& text) {
  return text +
         " is not a plain decimal number, and readers of YAML disagree on it; write its decimal "
         "digits";
}

std::string list_names(const std::vector<std::string>& names) {
  std::string result;
  for (const auto& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

// The first field of this name below `object`, so that a field at a wrong level is told its place.
std::string find_deeper(const Object& object, std::string_view name, const std::string& path) {
  for (const Field& field : object.fields) {
    if (field.kind != Kind::kObject || field.name == "status") continue;
    if (field.object->find(name) != nullptr) return join(join(path, field.name), name);
    if (auto found = find_deeper(*field.object, name, join(path, field.name)); !found.empty())
      return found;
  }
  return "";
}

}  // namespace

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

void Reader::error(const std::string& path, Place place, std::string message) {
  errors_.push_back({path, std::move(message), place.line, place.column});
}

bool Reader::expect(const TextNode& node, TextNode::Kind kind, const std::string& path,
                    std::string_view wanted) {
  if (node.kind == kind) return true;
  error(path, node.place,
        node.kind == TextNode::Kind::kNull ? std::string(kNullMessage) : wrong_type(node, wanted));
  return false;
}

const TextNode* Reader::accept(const TextNode::Entry& entry, const std::string& path,
                               std::set<std::string>& seen) {
  if (!seen.insert(entry.key).second) {
    error(path, entry.place, "given twice");
    return nullptr;
  }
  const bool scalar = entry.value.kind == TextNode::Kind::kScalar;
  place(path, scalar ? entry.value.place : entry.place);
  if (entry.value.kind == TextNode::Kind::kNull) {
    error(path, entry.place, std::string(kNullMessage));
    return nullptr;
  }
  return &entry.value;
}

void Reader::unknown(const TextNode::Entry& entry, const Object& object, const std::string& path) {
  std::vector<std::string> names;
  for (const Field& field : object.fields) names.push_back(field.name);
  std::string message = "unknown field";
  if (entry.key == "<<") {
    message += "; merge keys are not read, write the fields out";
  } else if (const auto meant = nearest(entry.key, names)) {
    message += "; did you mean " + *meant + "?";
  } else if (const auto deeper = find_deeper(training_job(), entry.key, ""); !deeper.empty()) {
    message += "; there is " + deeper;
  } else {
    message +=
        names.empty() ? "; no field is allowed here" : "; allowed here: " + list_names(names);
  }
  error(join(path, entry.key), entry.place, std::move(message));
}

std::vector<const TextNode*> Reader::match(const TextNode& node, const Object& object,
                                           const std::string& path) {
  std::vector<const TextNode*> values(object.fields.size(), nullptr);
  std::vector<bool> mentioned(object.fields.size(), false);
  std::set<std::string> seen;
  int alternatives = 0;
  std::vector<const TextNode::Entry*> strangers;
  for (const auto& entry : node.entries) {
    const Field* field = object.find(entry.key);
    if (field == nullptr) {
      strangers.push_back(&entry);
      continue;
    }
    const auto index = static_cast<size_t>(field - object.fields.data());
    alternatives += field->alternative && !mentioned[index] ? 1 : 0;
    mentioned[index] = true;
    if (const TextNode* value = accept(entry, join(path, entry.key), seen)) values[index] = value;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Field& field = object.fields[i];
    if (field.required && !mentioned[i]) error(join(path, field.name), node.place, "missing");
  }
  // An unknown name is likely the alternative, misspelt or of a newer version: one error is enough.
  const bool lacks_one = object.has_alternatives() && alternatives == 0;
  for (const TextNode::Entry* entry : strangers) {
    if (passes_over_ && !lacks_one) {
      unknown_.push_back(join(path, entry->key));
    } else {
      unknown(*entry, object, path);
    }
  }
  if (object.has_alternatives() && alternatives != 1 && !(lacks_one && !strangers.empty()))
    no_single_alternative(node, object, path, alternatives);
  return values;
}

void Reader::no_single_alternative(const TextNode& node, const Object& object,
                                   const std::string& path, int given) {
  std::vector<std::string> names;
  for (const Field& field : object.fields) {
    if (field.alternative) names.push_back(field.name);
  }
  error(path, node.place,
        std::to_string(given) + " given of which exactly one is needed: " + list_names(names));
}

std::optional<bool> Reader::boolean(const TextNode& node, const std::string& path) {
  if (!expect(node, TextNode::Kind::kScalar, path, "true or false")) return std::nullopt;
  if (node.plain && look_of(node.text) == Look::kBoolean) return node.text == "true";
  const bool like = node.plain && look_of(node.text) == Look::kAmbiguous;
  error(path, node.place,
        like ? in_quotes(node.text) + " is not allowed; write true or false"
             : wrong_type(node, "true or false"));
  return std::nullopt;
}

std::optional<int64_t> Reader::integer(const TextNode& node, const std::string& path) {
  if (!expect(node, TextNode::Kind::kScalar, path, "a whole number")) return std::nullopt;
  const Look look = node.plain ? look_of(node.text) : Look::kText;
  if (look == Look::kInteger) {
    if (const auto value = parse_integer(node.text)) return value;
    error(path, node.place, node.text + " is out of range for a whole number");
  } else if (look == Look::kNumber) {
    error(path, node.place, node.text + " is not a whole number in digits alone");
  } else if (look == Look::kAmbiguous) {
    error(path, node.place, ambiguous_number(node.text));
  } else {
    error(path, node.place, wrong_type(node, "a whole number"));
  }
  return std::nullopt;
}

std::optional<double> Reader::number(const TextNode& node, const std::string& path) {
  if (!expect(node, TextNode::Kind::kScalar, path, "a number")) return std::nullopt;
  const Look look = node.plain ? look_of(node.text) : Look::kText;
  if (look == Look::kInteger || look == Look::kNumber) {
    if (const auto value = parse_number(node.text)) return value;
    error(path, node.place, node.text + " is out of range for a number");
  } else if (look == Look::kAmbiguous) {
    error(path, node.place, ambiguous_number(node.text));
  } else {
    error(path, node.place, wrong_type(node, "a number"));
  }
  return std::nullopt;
}

std::optional<std::string> Reader::text(const TextNode& node, const std::string& path) {
  if (!expect(node, TextNode::Kind::kScalar, path, "text")) return std::nullopt;
  if (!node.plain || look_of(node.text) == Look::kText) return node.text;
  const std::string what = look_of(node.text) == Look::kBoolean ? " is a boolean"
                           : look_of(node.text) == Look::kAmbiguous
                               ? " is not text to every reader of YAML"
                               : " is a number";
  error(path, node.place, node.text + what + "; for text write " + in_quotes(node.text));
  return std::nullopt;
}

}  // namespace outrigger::api::schema
