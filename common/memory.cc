#include "common/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/cgroup.h"

namespace outrigger {

uint64_t available_memory() {
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  // The first version's "no limit" is a number, and a large one.
  if (const auto limit = cgroup_memory(); limit && *limit < static_cast<double>(bytes))
    bytes = static_cast<uint64_t>(*limit);
  return bytes;
}

uint64_t used_memory() {
  uint64_t size = 0;
  uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t free_memory() {
  const uint64_t limit = available_memory();
  return limit - std::min(limit, used_memory());
}

}  // namespace outrigger
