#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/sample.h"
#include "data/unknown_class.h"

namespace outrigger::data {

/// Lists WebDataset tar shards under `root`. `pattern` is a shard, a pattern with braces, or a
/// folder whose *.tar are taken sorted bytewise; empty for `root` itself.
///
/// A sample is a member with an image's extension; its label is the decimal number in the member of
/// the same key (the path up to the first dot of its last part) with extension `cls`, which must
/// stand next to it in the tar. Keys without an image are passed over with one warning. Reads
/// headers only and skips over the images. Classes are named "0", "1", … up to the largest label,
/// unless `classes` says what they are; one behind these is called by its label. Block starts are
/// the shards'.
///
/// Throws InvalidInput that names what is wrong, and shard and offset where it is in a shard: no
/// such folder, not a tar, cut short, compressed, an image without a label, a label that is no
/// number or, where such are refused, out of `classes`, a URL; IoError when a shard cannot be read.
Dataset list_web_dataset(const std::filesystem::path& root, std::string_view pattern,
                         const std::vector<std::string>& classes = {},
                         UnknownClass unknown = UnknownClass::kRefused);

/// The same for shards given one by one, in that order.
Dataset list_shards(const std::filesystem::path& root, const std::vector<std::string>& shards,
                    const std::vector<std::string>& classes = {},
                    UnknownClass unknown = UnknownClass::kRefused);

}  // namespace outrigger::data
