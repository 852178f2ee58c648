#include <algorithm>

#include "api/schema/faults.h"
#include "api/schema/type.h"

namespace outrigger::api::schema {

std::optional<size_t> read_word(const TextNode& node, const Field& field, const std::string& path,
                                Reader& reader) {
  // Quotes and look are no matter here: a wrong word is answered with the right
  // ones.
  if (!reader.expect(node, TextNode::Kind::kScalar, path, "one of a few words"))
    return std::nullopt;
  if (auto fault = text_fault(node.text, field)) {
    reader.error(path, node.place, std::move(*fault));
    return std::nullopt;
  }
  const auto word = std::find(field.values.begin(), field.values.end(), node.text);
  return static_cast<size_t>(word - field.values.begin());
}

Json write_word(std::string_view word) { return word; }

std::string item_path(const std::string& path, size_t i) {
  return path + "[" + std::to_string(i) + "]";
}

bool read_list(const TextNode& node, const Field& field, const std::string& path, Reader& reader) {
  if (!reader.expect(node, TextNode::Kind::kList, path, "a list")) return false;
  if (auto fault = count_fault(node.items.size(), field)) {
    reader.error(path, node.place, std::move(*fault));
    return false;
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    reader.place(item_path(path, i), node.items[i].place);
  }
  return true;
}

void check_count(size_t items, const Field& field, const std::string& path, Errors& errors) {
  if (auto fault = count_fault(items, field)) errors.push_back({path, std::move(*fault)});
}

Json write_list(std::vector<Json> items) {
  Json list = Json::array();
  for (Json& item : items) list.push_back(std::move(item));
  return list;
}

}  // namespace outrigger::api::schema
