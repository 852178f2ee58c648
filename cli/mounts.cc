#include "cli/mounts.h"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace outrigger::cli {

void add_mount_option(CLI::App& command, std::vector<std::string>& mounts) {
  command
      .add_option("-m,--mount", mounts,
                  "CLAIM=FOLDER: where a claim of the job lies here; may be repeated")
      ->allow_extra_args(false);
}

api::Mounts parse_mounts(const std::vector<std::string>& mounts) {
  api::Mounts parsed;
  for (const std::string& mount : mounts) {
    const auto equals = mount.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == mount.size()) {
      throw CLI::ValidationError("--mount",
                                 mount + ": wanted is CLAIM=FOLDER, e.g. faces=/srv/faces");
    }
    parsed[mount.substr(0, equals)] = std::filesystem::absolute(mount.substr(equals + 1));
  }
  return parsed;
}

}  // namespace outrigger::cli
