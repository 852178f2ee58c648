#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "api/exit_codes.h"

namespace outrigger::api {

/// What a process says when it ends, for whoever started it: the container's termination message.
struct LastWords {
  ExitCode code = ExitCode::kDone;
  std::string message;      // one sentence, with the cause
  nlohmann::json progress;  // as in /status; null where there was none
};

/// One JSON object of at most 4,000 bytes, which is what Kubernetes keeps: a longer message is cut
/// short.
std::string to_json_text(const LastWords& words);
/// Nothing where the text is no such object, as after a crash.
std::optional<LastWords> parse_last_words(std::string_view text);
/// Overwrites the file in place: a termination log is a mount that nothing can be renamed onto.
/// Never throws: a process that ends has nobody left to tell.
void write_last_words(const std::filesystem::path& path, const LastWords& words) noexcept;

}  // namespace outrigger::api
