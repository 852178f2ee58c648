#include "api/schema/type.h"

#include "api/schema/scalar.h"

namespace outrigger::api::schema {

bool Type<Time>::read(const Node& node, const Field&, Time& value, const std::string& path,
                      Reader& reader) {
  if (!reader.expect(node, Node::Kind::kScalar, path, "a time")) return false;
  if (const auto time = parse_time(node.text)) {
    value = *time;
    return true;
  }
  reader.error(path, node.place,
               in_quotes(node.text) + " is no time; one like 2026-01-31T12:00:00Z is needed");
  return false;
}

bool Type<std::map<std::string, std::string>>::read(const Node& node, const Field& field,
                                                    Map& value, const std::string& path,
                                                    Reader& reader) {
  if (!reader.expect(node, Node::Kind::kMap, path, "an object of texts")) return false;
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

void Type<std::map<std::string, std::string>>::check(const Map& value, const Field& field,
                                                     const std::string& path, Errors& errors) {
  add_fault(count_fault(value.size(), field), path, errors);
  for (const auto& [name, text] : value)
    add_fault(text_fault(text, field), join(path, name), errors);
}

}  // namespace outrigger::api::schema
