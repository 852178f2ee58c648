#include "feed/stem_memory.h"

#include <functional>
#include <limits>

namespace outrigger::feed {

double memory_for_stems(const StemMemory& memory, uint32_t away, bool trains,
                        std::vector<double> has) {
  std::ranges::sort(has, std::greater());
  // The more share them, the less each must hold.
  for (; !has.empty(); has.pop_back()) {
    const double needs = memory.needs(away, trains, has.size());
    if (has.back() >= needs) return needs;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace outrigger::feed
