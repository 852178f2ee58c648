#pragma once

#include <optional>
#include <string_view>

#include "kube/object/field_filter.h"

namespace outrigger::kube {

/// Parses what API servers usually send: valid, in ASCII, not nested deeply. What the
/// filter leaves out is passed over without a look at more than their quotes and brackets. Nothing
/// where the text is anything else, valid or not: then the library's parser, which is several times
/// slower, decides.
std::optional<Json> parse_quickly(std::string_view text, const FieldFilter& filter);

}  // namespace outrigger::kube
