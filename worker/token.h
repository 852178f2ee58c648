#pragma once

#include <filesystem>
#include <string>

namespace outrigger::worker {

/// A token from its file, without the white space behind it. Throws InvalidInput where no file is
/// named or it is empty, IoError where it cannot be read.
std::string read_token(const std::filesystem::path& file);

}  // namespace outrigger::worker
