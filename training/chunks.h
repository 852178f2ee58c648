#pragma once

#include <cstdint>
#include <vector>

namespace outrigger::training {

/// How many micro-batches run as one, one piece behind the other: `count` in all, `most` at once.
/// Powers of two, so that whatever a plan's share a device has few programs; the largest come
/// first. Pure.
std::vector<uint32_t> plan_chunks(uint32_t count, uint32_t most);

}  // namespace outrigger::training
