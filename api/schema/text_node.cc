#include "api/schema/text_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "api/schema/text_check.h"

namespace outrigger::api::schema {
namespace {

constexpr size_t kDeepest = 64;
constexpr size_t kMostNodes = 100'000;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Place place_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

/// Stops the parser; caught in read_tree.
struct TreeFault {
  Place place;
  std::string message;
};

size_t count_nodes(const TextNode& node) {
  size_t count = 1;
  for (const TextNode& item : node.items) count += count_nodes(item);
  for (const auto& entry : node.entries) count += count_nodes(entry.value);
  return count;
}

size_t depth_of(const TextNode& node) {
  size_t deepest = 0;
  for (const TextNode& item : node.items) deepest = std::max(deepest, depth_of(item));
  for (const auto& entry : node.entries) deepest = std::max(deepest, depth_of(entry.value));
  return deepest + 1;
}

/// Builds the tree from the parser's events. The parser's own node type is not used: it drops the
/// difference between 5 and "5" late, shares aliased nodes, and has no bound.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string what) : what_(std::move(what)) {}

  TextNode take_root() { return std::move(root_); }
  bool has_root() const { return has_root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    document_ = place_of(mark);
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({TextNode::Kind::kNull, place_of(mark), "", true, {}, {}}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      throw TreeFault{place_of(mark), "an alias inside of what it stands for"};
    }
    TextNode copy = known->second;
    copy.place = place_of(mark);
    spend(count_nodes(copy), copy.place);
    if (open_.size() + depth_of(copy) > kDeepest) too_deep(copy.place);
    add(std::move(copy), YAML::NullAnchor, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    // yaml-cpp marks scalars without a tag with "?" when plain and "!" when quoted.
    const bool text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!text) refuse_tag(tag, mark);
    add({TextNode::Kind::kScalar, place_of(mark), value, !text, {}, {}}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(TextNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(TextNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    TextNode node;
    YAML::anchor_t anchor;
    bool has_key = false;
  };

  [[noreturn]] static void too_deep(Place place) {
    throw TreeFault{place, "nested too deep; at most " + std::to_string(kDeepest) + " levels"};
  }

  static void refuse_tag(const std::string& tag, const YAML::Mark& mark) {
    if (tag != "?" && !tag.empty()) {
      throw TreeFault{place_of(mark),
                      "the tag " + tag + " is not allowed; write the value without a tag"};
    }
  }

  void spend(size_t nodes, Place place) {
    nodes_ += nodes;
    if (nodes_ > kMostNodes) {
      throw TreeFault{place, "too many values, aliases counted each time; at most " +
                                 std::to_string(kMostNodes)};
    }
  }

  void open(TextNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    refuse_tag(tag, mark);
    if (open_.size() >= kDeepest) too_deep(place_of(mark));
    if (wants_key())
      throw TreeFault{place_of(mark),
                      "a list or an object as a name is not allowed; is a bracket not closed?"};
    open_.push_back({{kind, place_of(mark), "", true, {}, {}}, anchor});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }

  bool wants_key() const {
    return !open_.empty() && open_.back().node.kind == TextNode::Kind::kMap &&
           !open_.back().has_key;
  }

  void add(TextNode node, YAML::anchor_t anchor, size_t cost = 1) {
    spend(cost, node.place);
    if (anchor != YAML::NullAnchor) {
      spend(count_nodes(node), node.place);  // anchors within anchors keep a copy each
      anchors_[anchor] = node;
    }
    if (open_.empty()) return set_root(std::move(node));
    Open& parent = open_.back();
    if (parent.node.kind == TextNode::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (wants_key()) {
      if (node.kind != TextNode::Kind::kScalar) throw TreeFault{node.place, "a name is missing"};
      parent.node.entries.push_back({std::move(node.text), node.place, {}});
      parent.has_key = true;
    } else {
      parent.node.entries.back().value = std::move(node);
      parent.has_key = false;
    }
  }

  void set_root(TextNode node) {
    if (node.kind == TextNode::Kind::kNull) return;  // an empty document, as after a closing "---"
    if (has_root_) {
      throw TreeFault{document_, "a second document starts here; a file holds one " + what_};
    }
    root_ = std::move(node);
    has_root_ = true;
  }

  const std::string what_;
  TextNode root_;
  bool has_root_ = false;
  Place document_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, TextNode> anchors_;
  size_t nodes_ = 0;
};

/// The usual reason why a line that looks right is not.
std::string tab_note(std::string_view text, int line) {
  std::istringstream lines{std::string(text)};
  std::string one;
  for (int number = 0; number < line; ++number) std::getline(lines, one);
  const size_t indentation = std::min(one.find_first_not_of(" \t"), one.size());
  const bool has_tab = one.find('\t') < indentation;
  return has_tab ? "; the line is indented with a tab, YAML wants spaces" : "";
}

}  // namespace

TextNode read_tree(std::string_view text, std::vector<FieldError>& errors,
                   const std::string& what) {
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    text.remove_prefix(kByteOrderMark.size());
  if (const auto bad = find_bad_text(text)) {
    errors.push_back(*bad);
    return {};
  }
  TreeBuilder builder(what);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    if (builder.has_root()) return builder.take_root();
    errors.push_back({"", "there is nothing in it; a " + what + " is needed", 1, 1});
  } catch (const TreeFault& fault) {
    errors.push_back({"", fault.message, fault.place.line, fault.place.column});
  } catch (const YAML::Exception& e) {
    const Place place = e.mark.is_null() ? Place{} : place_of(e.mark);
    errors.push_back(
        {"", "not valid YAML: " + e.msg + tab_note(text, place.line), place.line, place.column});
  }
  return {};
}

}  // namespace outrigger::api::schema
