#include "cli/mounts.h"

#include "common/error.h"

namespace outrigger::cli {

std::map<std::string, std::filesystem::path> parse_mounts(const std::vector<std::string>& mounts) {
  std::map<std::string, std::filesystem::path> parsed;
  for (const std::string& mount : mounts) {
    const auto equals = mount.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == mount.size()) {
      throw InvalidInput("--mount " + mount + ": wanted is CLAIM=FOLDER, e.g. faces=/srv/faces");
    }
    parsed[mount.substr(0, equals)] = std::filesystem::absolute(mount.substr(equals + 1));
  }
  return parsed;
}

}  // namespace outrigger::cli
