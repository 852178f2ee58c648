#include "api/yaml_text.h"

#include <algorithm>

#include "api/schema/scalar.h"

namespace outrigger::api {
namespace {

using Json = nlohmann::ordered_json;

bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:@+").find(c) != std::string_view::npos;
}

// Only texts without any character that YAML gives a meaning to stay without quotes.
bool may_be_plain(const std::string& text) {
  if (text.empty() || text.size() > 200 || text.back() == ':') return false;
  if (std::string_view("-.:@").find(text.front()) != std::string_view::npos) return false;
  if (text.find("---") != text.npos) return false;
  return std::all_of(text.begin(), text.end(), is_plain_character) &&
         schema::look_of(text) == schema::Look::kText;
}

/// With a dot in it wherever it has an exponent: 5e-05 is text to readers of YAML 1.1.
std::string number(double value) {
  std::string text = schema::format_number(value);
  const size_t exponent = text.find('e');
  if (exponent != text.npos && text.find('.') == text.npos) text.insert(exponent, ".0");
  return text;
}

std::string scalar(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return may_be_plain(text) ? text : value.dump();
  }
  if (value.is_number_float()) return number(value.get<double>());
  return value.dump();
}

std::string key(const std::string& name) { return may_be_plain(name) ? name : Json(name).dump(); }

bool is_inline(const Json& value) { return !value.is_structured() || value.empty(); }

void write(const Json& value, size_t indent, std::string& out);

void write_value(const Json& value, size_t indent, std::string& out) {
  if (is_inline(value)) {
    out += " " + scalar(value) + "\n";
    return;
  }
  out += '\n';
  write(value, indent, out);
}

// An item's first line follows its dash.
void write_item(const Json& value, size_t indent, std::string& out) {
  if (is_inline(value)) {
    out += scalar(value) + "\n";
    return;
  }
  std::string inner;
  write(value, indent, inner);
  out += inner.substr(indent);
}

void write(const Json& value, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (value.is_array()) {
    for (const Json& item : value) {
      out += margin + "- ";
      write_item(item, indent + 2, out);
    }
    return;
  }
  for (const auto& [name, member] : value.items()) {
    out += margin + key(name) + ":";
    write_value(member, indent + 2, out);
  }
}

}  // namespace

std::string to_yaml_text(const Json& value) {
  std::string out;
  if (is_inline(value)) return scalar(value) + "\n";
  write(value, 0, out);
  return out;
}

}  // namespace outrigger::api
