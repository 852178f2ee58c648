#pragma once

#include <cstdint>

namespace outrigger {

/// Bytes that this process may use: the limit of its cgroup (v1 or v2) or the least of those around
/// it, at most the machine's memory.
uint64_t available_memory();

/// Bytes that it has in memory now.
uint64_t used_memory();

/// What it may use besides that.
uint64_t free_memory();

}  // namespace outrigger
