#include "data/shard_names.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "common/error.h"

namespace outrigger::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNames = 1000000;

/// What stands in one pair of braces.
std::vector<std::string> choices(std::string_view inside, std::string_view pattern) {
  std::vector<std::string> names;
  const size_t dots = inside.find("..");
  if (dots == std::string_view::npos) {
    for (size_t from = 0; from <= inside.size();) {
      const size_t comma = std::min(inside.find(',', from), inside.size());
      names.emplace_back(inside.substr(from, comma - from));
      from = comma + 1;
    }
    return names;
  }
  const auto number = [&](std::string_view text) {
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      throw InvalidInput(std::string(pattern) + ": \"" + std::string(text) +
                         "\" is no number; a range is {000..123}");
    }
    return value;
  };
  const std::string_view low = inside.substr(0, dots);
  const uint64_t first = number(low);
  const uint64_t last = number(inside.substr(dots + 2));
  if (last < first || last - first >= kMaxNames) {
    throw InvalidInput(std::string(pattern) + ": the range {" + std::string(inside) +
                       "} must run up, over at most " + std::to_string(kMaxNames) + " names");
  }
  for (uint64_t i = first; i <= last; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    names.push_back(std::move(digits));
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_braces(std::string_view pattern) {
  std::vector<std::string> names{""};
  size_t from = 0;
  while (from < pattern.size()) {
    const size_t open = std::min(pattern.find('{', from), pattern.size());
    for (std::string& name : names) name += pattern.substr(from, open - from);
    if (open == pattern.size()) break;
    const size_t close = pattern.find('}', open);
    if (close == std::string_view::npos)
      throw InvalidInput(std::string(pattern) + ": \"{\" without \"}\"");
    const std::vector<std::string> parts =
        choices(pattern.substr(open + 1, close - open - 1), pattern);
    if (names.size() * parts.size() > kMaxNames) {
      throw InvalidInput(std::string(pattern) + ": more than " + std::to_string(kMaxNames) +
                         " names");
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& part : parts) longer.push_back(name + part);
    }
    names = std::move(longer);
    from = close + 1;
  }
  return names;
}

std::vector<std::string> find_shards(const fs::path& root, std::string_view pattern) {
  if (pattern.find("://") != std::string_view::npos) {
    throw InvalidInput(std::string(pattern) +
                       ": shards behind URLs cannot be read yet; give a path");
  }
  const fs::path folder = pattern.empty() ? root : root / pattern;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    if (!pattern.empty()) return expand_braces(pattern);
    throw InvalidInput(root.string() + ": no such folder; a folder of .tar shards is wanted");
  }
  std::vector<std::string> shards;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".tar") continue;
    shards.push_back((fs::path(pattern) / it->path().filename()).string());
  }
  if (error) throw IoError("cannot list " + folder.string() + ": " + error.message());
  if (shards.empty()) throw InvalidInput(folder.string() + ": no shard (*.tar) in it");
  std::sort(shards.begin(), shards.end());
  return shards;
}

}  // namespace outrigger::data
