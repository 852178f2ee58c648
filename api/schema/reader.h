#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/field_error.h"
#include "api/schema.h"
#include "api/schema/text_node.h"

namespace outrigger::api::schema {

/// Collects what is wrong while a tree is read, and where each field stands.
class Reader {
 public:
  /// With `passes_over_unknown` names that are not known are no errors but listed, except where one
  /// stands in the place of an alternative that is needed.
  explicit Reader(bool passes_over_unknown = false) : passes_over_(passes_over_unknown) {}

  void error(const std::string& path, Place place, std::string message);

  /// Reports unless `node` is of `kind`.
  bool expect(const TextNode& node, TextNode::Kind kind, const std::string& path,
              std::string_view wanted);

  /// The value of each field of `object` in `node` (null where absent), after reporting unknown and
  /// doubled names, nulls, missing fields, and other than one alternative.
  std::vector<const TextNode*> match(const TextNode& node, const Object& object,
                                     const std::string& path);

  /// Scalars. Nothing, and an error, where the text is of another type; each says what would have
  /// been right.
  std::optional<bool> boolean(const TextNode& node, const std::string& path);
  std::optional<int64_t> integer(const TextNode& node, const std::string& path);
  std::optional<double> number(const TextNode& node, const std::string& path);
  std::optional<std::string> text(const TextNode& node, const std::string& path);
  std::optional<nlohmann::json> json(const TextNode& node, const std::string& path);

  /// Notes where the value of `path` stands.
  void place(const std::string& path, Place place) { places_[path] = {place.line, place.column}; }

  std::vector<FieldError> take_errors() { return std::move(errors_); }
  std::vector<std::string> take_unknown() { return std::move(unknown_); }
  std::map<std::string, std::pair<int, int>> take_places() { return std::move(places_); }

 private:
  const TextNode* accept(const TextNode::Entry& entry, const std::string& path,
                         std::set<std::string>& seen);
  void unknown(const TextNode::Entry& entry, const Object& object, const std::string& path);
  void no_single_alternative(const TextNode& node, const Object& object, const std::string& path,
                             int given);

  const bool passes_over_;
  std::vector<FieldError> errors_;
  std::vector<std::string> unknown_;
  std::map<std::string, std::pair<int, int>> places_;
};

/// "spec" + "training" = "spec.training"; "" + "spec" = "spec".
std::string join(const std::string& path, std::string_view name);

}  // namespace outrigger::api::schema
