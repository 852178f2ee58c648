#include "api/schema/type.h"

#include <limits>

#include "api/schema/faults.h"
#include "api/schema/scalar.h"

namespace outrigger::api::schema {
namespace {

void add_fault(std::optional<std::string> fault, const std::string& path, Errors& errors) {
  if (fault) errors.push_back({path, std::move(*fault)});
}

// Reports `fault` at a node; whether there was none.
bool accepted(std::optional<std::string> fault, const TextNode& node, const std::string& path,
              Reader& reader) {
  if (fault) reader.error(path, node.place, std::move(*fault));
  return !fault;
}

template <typename T>
bool keep(std::optional<T> read, T& value) {
  if (read) value = std::move(*read);
  return read.has_value();
}

std::optional<int64_t> read_integer(const TextNode& node, const Field& field,
                                    const std::string& path, Reader& reader) {
  const auto number = reader.integer(node, path);
  if (!number || !accepted(integer_fault(*number, field), node, path, reader)) return std::nullopt;
  return number;
}

}  // namespace

// A boolean.

template <>
void PlainType<bool>::describe(Field& field) {
  field.kind = Kind::kBoolean;
}
template <>
bool PlainType<bool>::read(const TextNode& node, const Field&, bool& value, const std::string& path,
                           Reader& reader) {
  return keep(reader.boolean(node, path), value);
}
template <>
void PlainType<bool>::check(const bool&, const Field&, const std::string&, Errors&) {}
template <>
Json PlainType<bool>::write(const bool& value) {
  return value;
}
template <>
bool PlainType<bool>::is_set(const bool&) {
  return true;
}

// Whole numbers.

template <>
void PlainType<int>::describe(Field& field) {
  field.kind = Kind::kInteger;
  field.minimum = std::numeric_limits<int>::min();
  field.maximum = std::numeric_limits<int>::max();
}
template <>
bool PlainType<int>::read(const TextNode& node, const Field& field, int& value,
                          const std::string& path, Reader& reader) {
  const auto number = read_integer(node, field, path, reader);
  if (number) value = static_cast<int>(*number);
  return number.has_value();
}
template <>
void PlainType<int>::check(const int& value, const Field& field, const std::string& path,
                           Errors& errors) {
  add_fault(integer_fault(value, field), path, errors);
}
template <>
Json PlainType<int>::write(const int& value) {
  return value;
}
template <>
bool PlainType<int>::is_set(const int&) {
  return true;
}

template <>
void PlainType<int64_t>::describe(Field& field) {
  field.kind = Kind::kInteger;
}
template <>
bool PlainType<int64_t>::read(const TextNode& node, const Field& field, int64_t& value,
                              const std::string& path, Reader& reader) {
  return keep(read_integer(node, field, path, reader), value);
}
template <>
void PlainType<int64_t>::check(const int64_t& value, const Field& field, const std::string& path,
                               Errors& errors) {
  add_fault(integer_fault(value, field), path, errors);
}
template <>
Json PlainType<int64_t>::write(const int64_t& value) {
  return value;
}
template <>
bool PlainType<int64_t>::is_set(const int64_t&) {
  return true;
}

using std::chrono::seconds;

template <>
void PlainType<seconds>::describe(Field& field) {
  field.kind = Kind::kSeconds;
}
template <>
bool PlainType<seconds>::read(const TextNode& node, const Field& field, seconds& value,
                              const std::string& path, Reader& reader) {
  const auto count = read_integer(node, field, path, reader);
  if (count) value = seconds(*count);
  return count.has_value();
}
template <>
void PlainType<seconds>::check(const seconds& value, const Field& field, const std::string& path,
                               Errors& errors) {
  add_fault(integer_fault(value.count(), field), path, errors);
}
template <>
Json PlainType<seconds>::write(const seconds& value) {
  return static_cast<int64_t>(value.count());
}
template <>
bool PlainType<seconds>::is_set(const seconds&) {
  return true;
}

// Numbers.

template <>
void PlainType<double>::describe(Field& field) {
  field.kind = Kind::kNumber;
}
template <>
bool PlainType<double>::read(const TextNode& node, const Field& field, double& value,
                             const std::string& path, Reader& reader) {
  const auto number = reader.number(node, path);
  if (!number || !accepted(number_fault(*number, field), node, path, reader)) return false;
  value = *number;
  return true;
}
template <>
void PlainType<double>::check(const double& value, const Field& field, const std::string& path,
                              Errors& errors) {
  add_fault(number_fault(value, field), path, errors);
}
template <>
Json PlainType<double>::write(const double& value) {
  return value;
}
template <>
bool PlainType<double>::is_set(const double&) {
  return true;
}

// Texts.

template <>
void PlainType<std::string>::describe(Field& field) {
  field.kind = Kind::kText;
}
template <>
bool PlainType<std::string>::read(const TextNode& node, const Field& field, std::string& value,
                                  const std::string& path, Reader& reader) {
  auto text = reader.text(node, path);
  if (!text || !accepted(text_fault(*text, field), node, path, reader)) return false;
  value = std::move(*text);
  return true;
}
template <>
void PlainType<std::string>::check(const std::string& value, const Field& field,
                                   const std::string& path, Errors& errors) {
  if (field.required || !value.empty()) add_fault(text_fault(value, field), path, errors);
}
template <>
Json PlainType<std::string>::write(const std::string& value) {
  return value;
}
template <>
bool PlainType<std::string>::is_set(const std::string& value) {
  return !value.empty();
}

template <>
void PlainType<Time>::describe(Field& field) {
  field.kind = Kind::kTime;
}
template <>
bool PlainType<Time>::read(const TextNode& node, const Field&, Time& value, const std::string& path,
                           Reader& reader) {
  if (!reader.expect(node, TextNode::Kind::kScalar, path, "a time")) return false;
  if (keep(parse_time(node.text), value)) return true;
  reader.error(path, node.place,
               in_quotes(node.text) + " is no time; one like 2026-01-31T12:00:00Z is needed");
  return false;
}
template <>
void PlainType<Time>::check(const Time&, const Field&, const std::string&, Errors&) {}
template <>
Json PlainType<Time>::write(const Time& value) {
  return api::to_string(value);
}
template <>
bool PlainType<Time>::is_set(const Time&) {
  return true;
}

template <>
void PlainType<TextMap>::describe(Field& field) {
  field.kind = Kind::kTextMap;
}
template <>
bool PlainType<TextMap>::read(const TextNode& node, const Field& field, TextMap& value,
                              const std::string& path, Reader& reader) {
  if (!reader.expect(node, TextNode::Kind::kMap, path, "an object of texts")) return false;
  if (!accepted(count_fault(node.entries.size(), field), node, path, reader)) return false;
  for (const auto& entry : node.entries) {
    const std::string inner = join(path, entry.key);
    std::string text;
    if (value.count(entry.key) > 0) {
      reader.error(inner, entry.place, "given twice");
    } else if (Type<std::string>::read(entry.value, field, text, inner, reader)) {
      value.emplace(entry.key, std::move(text));
    }
  }
  return true;
}
template <>
void PlainType<TextMap>::check(const TextMap& value, const Field& field, const std::string& path,
                               Errors& errors) {
  check_count(value.size(), field, path, errors);
  for (const auto& [name, text] : value) {
    add_fault(text_fault(text, field), join(path, name), errors);
  }
}
template <>
Json PlainType<TextMap>::write(const TextMap& value) {
  return value;
}
template <>
bool PlainType<TextMap>::is_set(const TextMap& value) {
  return !value.empty();
}

// Objects that are kept as they are.

using AnyObject = nlohmann::json;

template <>
void PlainType<AnyObject>::describe(Field& field) {
  field.kind = Kind::kJson;
}
template <>
bool PlainType<AnyObject>::read(const TextNode& node, const Field&, AnyObject& value,
                                const std::string& path, Reader& reader) {
  return reader.expect(node, TextNode::Kind::kMap, path, "an object") &&
         keep(reader.json(node, path), value);
}
template <>
void PlainType<AnyObject>::check(const AnyObject& value, const Field&, const std::string& path,
                                 Errors& errors) {
  if (!value.is_object()) errors.push_back({path, "an object is needed"});
}
template <>
Json PlainType<AnyObject>::write(const AnyObject& value) {
  return value;
}
template <>
bool PlainType<AnyObject>::is_set(const AnyObject&) {
  return true;
}

}  // namespace outrigger::api::schema
