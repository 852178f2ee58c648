#pragma once

#include <filesystem>
#include <optional>

namespace outrigger {

/// Cores that the CPU quota of this process's cgroup (v1 or v2), or the least of those around it,
/// gives it in the long run; absent: no quota. `mount`: where groups are; `own`: which one this
/// process is in.
std::optional<double> cgroup_cores(const std::filesystem::path& mount = "/sys/fs/cgroup",
                                   const std::filesystem::path& own = "/proc/self/cgroup");
/// Bytes that it lets all its processes have together, likewise.
std::optional<double> cgroup_memory(const std::filesystem::path& mount = "/sys/fs/cgroup",
                                    const std::filesystem::path& own = "/proc/self/cgroup");

}  // namespace outrigger
