#pragma once

#include <filesystem>
#include <string>

#include "api/launch.h"

namespace outrigger::gpu_server {

/// The join token: from the launch's file, else made up and written to `<directory>/join-token`,
/// readable by its owner alone, for workers started by hand. Throws InvalidInput for an empty file,
/// IoError.
std::string join_token(const api::Launch& launch, const std::filesystem::path& directory);

/// The control token, or nothing where the launch has none: then nobody may stop the server over
/// HTTP.
std::string control_token(const api::Launch& launch);

}  // namespace outrigger::gpu_server
