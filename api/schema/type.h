#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/enums.h"
#include "api/schema.h"
#include "api/schema/reader.h"
#include "api/time.h"

namespace outrigger::api::schema {

using Json = nlohmann::ordered_json;
using Errors = std::vector<FieldError>;
using TextMap = std::map<std::string, std::string>;

/// How a C++ type is described, read, checked and written; one specialisation
/// per type that a struct of the API may have as a member. `read` reports what
/// is wrong and returns whether it set `value`; `check` is the same rules for a
/// value that did not come from a text; `is_set` says whether writing shows it.
/// What needs no template is in type.cc: the tables instantiate the rest some
/// two hundred times.
template <typename T>
struct Type;

template <typename T>
struct PlainType {
  static void describe(Field& field);
  static bool read(const TextNode& node, const Field& field, T& value, const std::string& path,
                   Reader& reader);
  static void check(const T& value, const Field& field, const std::string& path, Errors& errors);
  static Json write(const T& value);
  static bool is_set(const T& value);
};

template <>
struct Type<bool> : PlainType<bool> {};
template <>
struct Type<int> : PlainType<int> {};
template <>
struct Type<int64_t> : PlainType<int64_t> {};
template <>
struct Type<double> : PlainType<double> {};
template <>
struct Type<std::chrono::seconds> : PlainType<std::chrono::seconds> {};
template <>
struct Type<std::string> : PlainType<std::string> {};
template <>
struct Type<Time> : PlainType<Time> {};
template <>
struct Type<TextMap> : PlainType<TextMap> {};
/// An object that is kept as it is.
template <>
struct Type<nlohmann::json> : PlainType<nlohmann::json> {};

/// The place of a word among field.values.
std::optional<size_t> read_word(const TextNode& node, const Field& field, const std::string& path,
                                Reader& reader);
Json write_word(std::string_view word);

/// An enumeration, by EnumNames.
template <typename E>
requires std::is_enum_v<E>
struct Type<E> {
  static void describe(Field& field) {
    field.kind = Kind::kEnum;
    for (const auto& row : EnumNames<E>::kAll) field.values.emplace_back(row.name);
  }
  static bool read(const TextNode& node, const Field& field, E& value, const std::string& path,
                   Reader& reader) {
    const auto index = read_word(node, field, path, reader);
    if (index) value = EnumNames<E>::kAll[*index].value;
    return index.has_value();
  }
  static void check(E, const Field&, const std::string&, Errors&) {}
  static Json write(E value) { return write_word(enum_name(value)); }
  static bool is_set(E) { return true; }
};

std::string item_path(const std::string& path, size_t i);
/// Reports other than a list, and one with too many items; notes where the
/// items stand.
bool read_list(const TextNode& node, const Field& field, const std::string& path, Reader& reader);
void check_count(size_t items, const Field& field, const std::string& path, Errors& errors);
Json write_list(std::vector<Json> items);

template <typename T>
struct Type<std::vector<T>> {
  static void describe(Field& field) {
    Type<T>::describe(field);
    field.item = field.kind;
    field.kind = Kind::kList;
  }
  static bool read(const TextNode& node, const Field& field, std::vector<T>& value,
                   const std::string& path, Reader& reader) {
    if (!read_list(node, field, path, reader)) return false;
    for (size_t i = 0; i < node.items.size(); ++i) {
      T item{};
      if (Type<T>::read(node.items[i], field, item, item_path(path, i), reader)) {
        value.push_back(std::move(item));
      }
    }
    return true;
  }
  static void check(const std::vector<T>& value, const Field& field, const std::string& path,
                    Errors& errors) {
    check_count(value.size(), field, path, errors);
    for (size_t i = 0; i < value.size(); ++i) {
      Type<T>::check(value[i], field, item_path(path, i), errors);
    }
  }
  static Json write(const std::vector<T>& value) {
    std::vector<Json> items;
    for (const T& item : value) items.push_back(Type<T>::write(item));
    return write_list(std::move(items));
  }
  static bool is_set(const std::vector<T>& value) { return !value.empty(); }
};

template <typename T>
struct Type<std::optional<T>> {
  static void describe(Field& field) { Type<T>::describe(field); }
  static bool read(const TextNode& node, const Field& field, std::optional<T>& value,
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
