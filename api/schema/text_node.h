#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/field_error.h"

namespace outrigger::api::schema {

/// A place in a text, both from 1.
struct Place {
  int line = 0;
  int column = 0;
};

/// One value of a YAML or JSON text with its place. Scalars keep their text as written: only the
/// field that takes the value knows its type, so nothing is guessed from how it looks.
struct TextNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  Place place;
  std::string text;   // of a scalar
  bool plain = true;  // a scalar without quotes
  std::vector<TextNode> items;
  std::vector<Entry> entries;  // in the text's order; a key may be there twice
};

struct TextNode::Entry {
  std::string key;
  Place place;  // of the key
  TextNode value;
};

/// Reads a text with exactly one document, `what` by its name. On a fault `errors` gets one error,
/// and the node is null. Bounded: 1 MiB of text, 64 levels, 100,000 nodes with aliases written out.
TextNode read_tree(std::string_view text, std::vector<FieldError>& errors,
                   const std::string& what = "TrainingJob");

}  // namespace outrigger::api::schema
