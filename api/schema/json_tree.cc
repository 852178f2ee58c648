#include "api/schema/json_tree.h"

#include <utility>

namespace outrigger::api::schema {

TextNode tree_of(const nlohmann::json& value) {
  TextNode node;
  if (value.is_object()) {
    node.kind = TextNode::Kind::kMap;
    for (const auto& [key, member] : value.items())
      node.entries.push_back({key, {}, tree_of(member)});
  } else if (value.is_array()) {
    node.kind = TextNode::Kind::kList;
    for (const auto& item : value) node.items.push_back(tree_of(item));
  } else if (value.is_string()) {
    node.kind = TextNode::Kind::kScalar;
    node.plain = false;
    node.text = value.get<std::string>();
  } else if (!value.is_null()) {
    node.kind = TextNode::Kind::kScalar;
    node.text = value.dump();
  }
  return node;
}

}  // namespace outrigger::api::schema
