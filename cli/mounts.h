#pragma once

#include <string>
#include <vector>

#include "api/launch.h"

namespace CLI {
class App;
}

namespace outrigger::cli {

/// Adds `--mount CLAIM=FOLDER`, the same for every command; each takes one, so that the job's file
/// may stand behind it.
void add_mount_option(CLI::App& command, std::vector<std::string>& mounts);

/// What these say, folders made absolute. Throws CLI::ValidationError that shows the form.
api::Mounts parse_mounts(const std::vector<std::string>& mounts);

}  // namespace outrigger::cli
