#include "training/chunks.h"

#include <bit>

#include "common/error.h"

namespace outrigger::training {

std::vector<uint32_t> plan_chunks(uint32_t count, uint32_t most) {
  ensure(most >= 1, "at least one micro-batch runs at once");
  std::vector<uint32_t> sizes;
  for (uint32_t size = std::bit_floor(most); size >= 1; size /= 2) {
    for (; count >= size; count -= size) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace outrigger::training
