#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace outrigger::cli {

/// What `--mount CLAIM=FOLDER` says, folders made absolute. Throws InvalidInput that shows the
/// form.
std::map<std::string, std::filesystem::path> parse_mounts(const std::vector<std::string>& mounts);

/// The help of that option, the same for every command.
inline constexpr const char* kMountHelp =
    "CLAIM=FOLDER: where a claim of the job lies here; may be repeated";

}  // namespace outrigger::cli
