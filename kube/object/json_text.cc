#include <algorithm>
#include <charconv>
#include <string>

#include "kube/object/json.h"

namespace outrigger::kube {
namespace {

std::string by_library(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

void write_string(std::string& text, const std::string& value) {
  if (std::all_of(value.begin(), value.end(), is_plain)) {
    text.append(1, '"').append(value).append(1, '"');
  } else {
    text += by_library(value);
  }
}

template <typename Whole>
void write_whole(std::string& text, Whole number) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void write(std::string& text, const Json& value);

void write_object(std::string& text, const Json::object_t& members) {
  text += '{';
  for (const auto& [name, member] : members) {
    if (text.back() != '{') text += ',';
    write_string(text, name);
    text += ':';
    write(text, member);
  }
  text += '}';
}

void write_array(std::string& text, const Json::array_t& elements) {
  text += '[';
  for (const Json& element : elements) {
    if (text.back() != '[') text += ',';
    write(text, element);
  }
  text += ']';
}

void write(std::string& text, const Json& value) {
  using Type = Json::value_t;
  switch (value.type()) {
    case Type::object:
      return write_object(text, value.get_ref<const Json::object_t&>());
    case Type::array:
      return write_array(text, value.get_ref<const Json::array_t&>());
    case Type::string:
      return write_string(text, value.get_ref<const std::string&>());
    case Type::boolean:
      text += value.get<bool>() ? "true" : "false";
      return;
    case Type::number_integer:
      return write_whole(text, value.get<int64_t>());
    case Type::number_unsigned:
      return write_whole(text, value.get<uint64_t>());
    default:
      text += by_library(value);
  }
}

}  // namespace

std::string to_text(const Json& value) {
  constexpr size_t kMostObjects = 4096;
  std::string text;
  text.reserve(kMostObjects);
  write(text, value);
  return text;
}

}  // namespace outrigger::kube
