#include <algorithm>
#include <charconv>
#include <string>

#include "kube/object/json.h"

namespace outrigger::kube {
namespace {

template <typename AnyJson>
std::string by_library(const AnyJson& value) {
  return value.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

template <typename Whole>
void write_whole(std::string& text, Whole number) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

template <typename AnyJson>
void write(std::string& text, const AnyJson& value);

template <typename AnyJson>
void write_object(std::string& text, const AnyJson& value) {
  text += '{';
  for (const auto& [name, member] : value.template get_ref<const typename AnyJson::object_t&>()) {
    if (text.back() != '{') text += ',';
    append_text(text, name);
    text += ':';
    write(text, member);
  }
  text += '}';
}

template <typename AnyJson>
void write_array(std::string& text, const AnyJson& value) {
  text += '[';
  for (const AnyJson& element : value) {
    if (text.back() != '[') text += ',';
    write(text, element);
  }
  text += ']';
}

template <typename AnyJson>
void write(std::string& text, const AnyJson& value) {
  using Type = Json::value_t;
  switch (value.type()) {
    case Type::object:
      return write_object(text, value);
    case Type::array:
      return write_array(text, value);
    case Type::string:
      return append_text(text, value.template get_ref<const std::string&>());
    case Type::boolean:
      text += value.template get<bool>() ? "true" : "false";
      return;
    case Type::number_integer:
      return write_whole(text, value.template get<int64_t>());
    case Type::number_unsigned:
      return write_whole(text, value.template get<uint64_t>());
    default:
      text += by_library(value);
  }
}

template <typename AnyJson>
std::string written(const AnyJson& value) {
  constexpr size_t kMostObjects = 4096;
  std::string text;
  text.reserve(kMostObjects);
  write(text, value);
  return text;
}

}  // namespace

void append_text(std::string& text, std::string_view value) {
  if (std::all_of(value.begin(), value.end(), is_plain)) {
    text.append(1, '"').append(value).append(1, '"');
  } else {
    text += by_library(Json(value));
  }
}

std::string to_text(const Json& value) { return written(value); }

std::string to_text(const OrderedJson& value) { return written(value); }

}  // namespace outrigger::kube
