#include <set>

#include "api/schema/reader.h"
#include "api/schema/scalar.h"

namespace outrigger::api::schema {
namespace {

std::optional<nlohmann::json> scalar(Reader& reader, const TextNode& node,
                                     const std::string& path) {
  switch (node.plain ? look_of(node.text) : Look::kText) {
    case Look::kBoolean:
      return nlohmann::json(node.text == "true");
    case Look::kInteger:
      if (const auto value = reader.integer(node, path)) return nlohmann::json(*value);
      return std::nullopt;
    case Look::kNumber:
      if (const auto value = reader.number(node, path)) return nlohmann::json(*value);
      return std::nullopt;
    case Look::kAmbiguous:
      reader.error(path, node.place,
                   node.text + " is not the same to every reader of YAML; for text write " +
                       in_quotes(node.text));
      return std::nullopt;
    default:
      return nlohmann::json(node.text);
  }
}

}  // namespace

std::optional<nlohmann::json> Reader::json(const TextNode& node, const std::string& path) {
  if (node.kind == TextNode::Kind::kScalar) return scalar(*this, node, path);
  if (!(node.kind == TextNode::Kind::kList || node.kind == TextNode::Kind::kMap)) {
    expect(node, TextNode::Kind::kMap, path, "a value");
    return std::nullopt;
  }
  const bool list = node.kind == TextNode::Kind::kList;
  nlohmann::json result = list ? nlohmann::json::array() : nlohmann::json::object();
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (auto item = json(node.items[i], path + "[" + std::to_string(i) + "]")) {
      result.push_back(std::move(*item));
    }
  }
  std::set<std::string> seen;
  for (const auto& entry : node.entries) {
    const std::string inner = join(path, entry.key);
    const TextNode* value = accept(entry, inner, seen);
    if (value == nullptr) continue;
    if (auto member = json(*value, inner)) result[entry.key] = std::move(*member);
  }
  return result;
}

}  // namespace outrigger::api::schema
