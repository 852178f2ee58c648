#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace outrigger {

/// The candidate that `word` was probably meant to be: equal but for case, or at most a third of
/// its letters away (insertions, deletions, changes and swaps of neighbours each count one).
/// Nothing where none is that near; the first of equally near ones. For "did you mean".
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace outrigger
