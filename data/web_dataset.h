#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/sample.h"

namespace outrigger::data {

/// Writes out the one range or list in braces that a name may hold, as WebDataset does:
/// "train-{000..123}.tar" (bounds of the same width, filled with zeros), "{a,b}.tar". Several pairs
/// of braces multiply. A name without braces comes back alone. Throws InvalidInput for an unclosed
/// brace, a range that runs down, or more than 1e6 names.
std::vector<std::string> expand_braces(std::string_view pattern);

/// Lists WebDataset tar shards under `root`. `pattern` is a shard, a pattern with braces, or a
/// folder whose *.tar are taken sorted bytewise; empty for `root` itself.
///
/// A sample is a member with an image's extension; its label is the decimal number in the member of
/// the same key (the path up to the first dot of its last part) with extension `cls`, which must
/// stand next to it in the tar. Reads headers only and skips over the images. Classes are named
/// "0", "1", … up to the largest label, unless `classes` says what they are. Block starts are the
/// shards'.
///
/// Throws InvalidInput that names shard and offset: not a tar, cut short, compressed, an image
/// without a label, a label that is no number or out of `classes`, a URL; IoError when a shard
/// cannot be read.
Dataset list_web_dataset(const std::filesystem::path& root, std::string_view pattern,
                         const std::vector<std::string>& classes = {});

/// The same for shards given one by one, in that order.
Dataset list_shards(const std::filesystem::path& root, const std::vector<std::string>& shards,
                    const std::vector<std::string>& classes = {});

}  // namespace outrigger::data
