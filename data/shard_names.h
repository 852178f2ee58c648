#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace outrigger::data {

/// Writes out the one range or list in braces that a name may hold, as WebDataset does:
/// "train-{000..123}.tar" (bounds of the same width, filled with zeros), "{a,b}.tar". Several pairs
/// of braces multiply. A name without braces comes back alone. Throws InvalidInput for an unclosed
/// brace, a range that runs down, or more than 1e6 names.
std::vector<std::string> expand_braces(std::string_view pattern);

/// The shards that `pattern` names, relative to `root`: a pattern with braces as it is written out,
/// of a folder its *.tar sorted bytewise; empty for `root` itself, which must be a folder. Throws
/// InvalidInput for no such folder, none in it, or a URL; IoError when it cannot be listed.
std::vector<std::string> find_shards(const std::filesystem::path& root, std::string_view pattern);

}  // namespace outrigger::data
