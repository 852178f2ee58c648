#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace outrigger::data {

/// Files that a listing leaves out because their names are no images', for one line in the log.
class PassedOver {
 public:
  void add(const std::string& suffix, std::string_view path);
  void add(const PassedOver& others);
  /// Warns of the files, the commonest suffixes first; says nothing where there are none.
  void warn(const std::filesystem::path& root) const;

 private:
  struct Kind {
    uint64_t files = 0;
    std::string example;
  };
  std::map<std::string, Kind> by_suffix_;
};

}  // namespace outrigger::data
