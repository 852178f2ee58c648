#pragma once

#include <string_view>

/// Reasons of conditions that the next pass decides by; they are what a crash does not lose.
namespace outrigger::controller {

/// Of Running, and of others beside it: pods of this attempt may not have been made yet.
inline constexpr std::string_view kCreatingServers = "Creating";
/// Of Running: all were made, and the attempt has not run yet.
inline constexpr std::string_view kStartingServers = "Starting";
/// Of Restarting: the attempt failed before it ran, so the next one is not made at once.
inline constexpr std::string_view kFailedBeforeRunning = "FailedBeforeRunning";
/// Of Restarting: likewise, and servers that were put out of their places wait for others.
inline constexpr std::string_view kPutOutBeforeRunning = "PutOutBeforeRunning";

}  // namespace outrigger::controller
