#include "data/passed_over.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "common/log.h"

namespace outrigger::data {

void PassedOver::add(const std::string& suffix, std::string_view path) {
  Kind& kind = by_suffix_[suffix];
  if (kind.files++ == 0) kind.example = path;
}

void PassedOver::add(const PassedOver& others) {
  for (const auto& [suffix, other] : others.by_suffix_) {
    Kind& kind = by_suffix_[suffix];
    if (kind.files == 0) kind.example = other.example;
    kind.files += other.files;
  }
}

void PassedOver::warn(const std::filesystem::path& root) const {
  constexpr size_t kNamed = 3;
  using Entry = decltype(by_suffix_)::value_type;
  std::vector<const Entry*> kinds;
  uint64_t more = 0;  // files of which nothing is said yet
  for (const Entry& entry : by_suffix_) {
    more += entry.second.files;
    kinds.push_back(&entry);
  }
  if (kinds.empty()) return;
  std::ranges::stable_sort(kinds, std::greater{},
                           [](const Entry* entry) { return entry->second.files; });
  kinds.resize(std::min(kinds.size(), kNamed));
  std::string named;
  for (const Entry* entry : kinds) {
    more -= entry->second.files;
    named += (named.empty() ? "" : ", ") + std::to_string(entry->second.files) +
             (entry->first.empty() ? " without a suffix" : " *." + entry->first) + " (" +
             entry->second.example + ")";
  }
  if (more > 0) named += " and " + std::to_string(more) + " more";
  log::warning("{}: images are *.jpg, *.jpeg, *.png, *.pgm and *.ppm; passed over are {}",
               root.string(), named);
}

}  // namespace outrigger::data
