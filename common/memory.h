#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace outrigger {

/// Bytes that this process may use: the limit of its cgroup (v1 or v2) or the least of those around
/// it, at most the machine's memory.
uint64_t available_memory();

/// Bytes that it has in memory now.
uint64_t used_memory();

/// What the machine has left without swapping, as `meminfo` tells; absent: it does not.
std::optional<uint64_t> machine_memory(const std::filesystem::path& meminfo = "/proc/meminfo");

/// What this process may use besides what it has: others may have taken some of the machine's.
uint64_t free_memory();

}  // namespace outrigger
