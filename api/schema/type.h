#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/enums.h"
#include "api/schema.h"
#include "api/schema/faults.h"
#include "api/schema/reader.h"
#include "api/time.h"

namespace outrigger::api::schema {

using Json = nlohmann::ordered_json;
using Errors = std::vector<FieldError>;

/// How a C++ type is described, read, checked and written; one specialisation per type that a
/// struct of the API may have as a member. `read` reports what is wrong and returns whether it set
/// `value`; `check` is the same rules for a value that did not come from a text; `is_set` says
/// whether writing shows it.
template <typename T>
struct Type;

template <typename T>
bool keep(std::optional<T> read, T& value) {
  if (read) value = std::move(*read);
  return read.has_value();
}

inline void add_fault(std::optional<std::string> fault, const std::string& path, Errors& errors) {
  if (fault) errors.push_back({path, std::move(*fault)});
}

/// Reports `fault` at a node; whether there was none.
inline bool accepted(std::optional<std::string> fault, const Node& node, const std::string& path,
                     Reader& reader) {
  if (fault) reader.error(path, node.place, std::move(*fault));
  return !fault;
}

template <>
struct Type<bool> {
  static void describe(Field& field) { field.kind = Kind::kBoolean; }
  static bool read(const Node& node, const Field&, bool& value, const std::string& path,
                   Reader& reader) {
    return keep(reader.boolean(node, path), value);
  }
  static void check(bool, const Field&, const std::string&, Errors&) {}
  static Json write(bool value) { return value; }
  static bool is_set(bool) { return true; }
};

template <typename T>
requires std::same_as<T, int> || std::same_as<T, int64_t>
struct Type<T> {
  static void describe(Field& field) {
    field.kind = Kind::kInteger;
    if (std::same_as<T, int>) {
      field.minimum = std::numeric_limits<int>::min();
      field.maximum = std::numeric_limits<int>::max();
    }
  }
  static bool read(const Node& node, const Field& field, T& value, const std::string& path,
                   Reader& reader) {
    const auto number = reader.integer(node, path);
    if (!number || !accepted(integer_fault(*number, field), node, path, reader)) return false;
    value = static_cast<T>(*number);
    return true;
  }
  static void check(T value, const Field& field, const std::string& path, Errors& errors) {
    add_fault(integer_fault(value, field), path, errors);
  }
  static Json write(T value) { return value; }
  static bool is_set(T) { return true; }
};

template <>
struct Type<double> {
  static void describe(Field& field) { field.kind = Kind::kNumber; }
  static bool read(const Node& node, const Field& field, double& value, const std::string& path,
                   Reader& reader) {
    const auto number = reader.number(node, path);
    if (!number || !accepted(number_fault(*number, field), node, path, reader)) return false;
    value = *number;
    return true;
  }
  static void check(double value, const Field& field, const std::string& path, Errors& errors) {
    add_fault(number_fault(value, field), path, errors);
  }
  static Json write(double value) { return value; }
  static bool is_set(double) { return true; }
};

template <>
struct Type<std::chrono::seconds> {
  static void describe(Field& field) { field.kind = Kind::kSeconds; }
  static bool read(const Node& node, const Field& field, std::chrono::seconds& value,
                   const std::string& path, Reader& reader) {
    int64_t count = 0;
    if (!Type<int64_t>::read(node, field, count, path, reader)) return false;
    value = std::chrono::seconds(count);
    return true;
  }
  static void check(std::chrono::seconds value, const Field& field, const std::string& path,
                    Errors& errors) {
    add_fault(integer_fault(value.count(), field), path, errors);
  }
  static Json write(std::chrono::seconds value) { return static_cast<int64_t>(value.count()); }
  static bool is_set(std::chrono::seconds) { return true; }
};

template <>
struct Type<std::string> {
  static void describe(Field& field) { field.kind = Kind::kText; }
  static bool read(const Node& node, const Field& field, std::string& value,
                   const std::string& path, Reader& reader) {
    auto text = reader.text(node, path);
    if (!text || !accepted(text_fault(*text, field), node, path, reader)) return false;
    value = std::move(*text);
    return true;
  }
  static void check(const std::string& value, const Field& field, const std::string& path,
                    Errors& errors) {
    if (field.required || !value.empty()) add_fault(text_fault(value, field), path, errors);
  }
  static Json write(const std::string& value) { return value; }
  static bool is_set(const std::string& value) { return !value.empty(); }
};

template <>
struct Type<Time> {
  static void describe(Field& field) { field.kind = Kind::kTime; }
  static bool read(const Node& node, const Field&, Time& value, const std::string& path,
                   Reader& reader);
  static void check(Time, const Field&, const std::string&, Errors&) {}
  static Json write(Time value) { return api::to_string(value); }
  static bool is_set(Time) { return true; }
};

template <typename E>
requires std::is_enum_v<E>
struct Type<E> {
  static void describe(Field& field) {
    field.kind = Kind::kEnum;
    for (const auto& row : EnumNames<E>::kAll) field.values.emplace_back(row.name);
  }
  static bool read(const Node& node, const Field& field, E& value, const std::string& path,
                   Reader& reader) {
    // Quotes and look are no matter here: a wrong word is answered with the right ones.
    if (!reader.expect(node, Node::Kind::kScalar, path, "one of a few words")) return false;
    if (!accepted(text_fault(node.text, field), node, path, reader)) return false;
    for (const auto& row : EnumNames<E>::kAll) {
      if (row.name == node.text) value = row.value;
    }
    return true;
  }
  static void check(E, const Field&, const std::string&, Errors&) {}
  static Json write(E value) { return enum_name(value); }
  static bool is_set(E) { return true; }
};

/// An object that is kept as it is.
template <>
struct Type<nlohmann::json> {
  static void describe(Field& field) { field.kind = Kind::kJson; }
  static bool read(const Node& node, const Field&, nlohmann::json& value, const std::string& path,
                   Reader& reader) {
    return reader.expect(node, Node::Kind::kMap, path, "an object") &&
           keep(reader.json(node, path), value);
  }
  static void check(const nlohmann::json& value, const Field&, const std::string& path,
                    Errors& errors) {
    if (!value.is_object()) errors.push_back({path, "an object is needed"});
  }
  static Json write(const nlohmann::json& value) { return value; }
  static bool is_set(const nlohmann::json&) { return true; }
};

template <>
struct Type<std::map<std::string, std::string>> {
  using Map = std::map<std::string, std::string>;
  static void describe(Field& field) { field.kind = Kind::kTextMap; }
  static bool read(const Node& node, const Field& field, Map& value, const std::string& path,
                   Reader& reader);
  static void check(const Map& value, const Field& field, const std::string& path, Errors& errors);
  static Json write(const Map& value) { return value; }
  static bool is_set(const Map& value) { return !value.empty(); }
};

template <typename T>
struct Type<std::vector<T>> {
  static void describe(Field& field) {
    Type<T>::describe(field);
    field.item = field.kind;
    field.kind = Kind::kList;
  }
  static std::string item_path(const std::string& path, size_t i) {
    return path + "[" + std::to_string(i) + "]";
  }
  static bool read(const Node& node, const Field& field, std::vector<T>& value,
                   const std::string& path, Reader& reader) {
    if (!reader.expect(node, Node::Kind::kList, path, "a list")) return false;
    if (!accepted(count_fault(node.items.size(), field), node, path, reader)) return false;
    for (size_t i = 0; i < node.items.size(); ++i) {
      T item{};
      reader.place(item_path(path, i), node.items[i].place);
      if (Type<T>::read(node.items[i], field, item, item_path(path, i), reader))
        value.push_back(std::move(item));
    }
    return true;
  }
  static void check(const std::vector<T>& value, const Field& field, const std::string& path,
                    Errors& errors) {
    add_fault(count_fault(value.size(), field), path, errors);
    for (size_t i = 0; i < value.size(); ++i)
      Type<T>::check(value[i], field, item_path(path, i), errors);
  }
  static Json write(const std::vector<T>& value) {
    Json list = Json::array();
    for (const T& item : value) list.push_back(Type<T>::write(item));
    return list;
  }
  static bool is_set(const std::vector<T>& value) { return !value.empty(); }
};

template <typename T>
struct Type<std::optional<T>> {
  static void describe(Field& field) { Type<T>::describe(field); }
  static bool read(const Node& node, const Field& field, std::optional<T>& value,
                   const std::string& path, Reader& reader) {
    T inner{};
    if (Type<T>::read(node, field, inner, path, reader)) value = std::move(inner);
    return value.has_value();
  }
  static void check(const std::optional<T>& value, const Field& field, const std::string& path,
                    Errors& errors) {
    if (value) Type<T>::check(*value, field, path, errors);
  }
  static Json write(const std::optional<T>& value) { return Type<T>::write(*value); }
  static bool is_set(const std::optional<T>& value) { return value.has_value(); }
};

}  // namespace outrigger::api::schema
