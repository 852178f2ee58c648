#include "common/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

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

std::optional<uint64_t> machine_memory(const std::filesystem::path& meminfo) {
  std::ifstream file(meminfo);
  uint64_t kilobytes = 0;
  for (std::string name; file >> name;) {
    if (name == "MemAvailable:" && file >> kilobytes) return 1024 * kilobytes;
  }
  return std::nullopt;
}

uint64_t free_memory() {
  const uint64_t limit = available_memory();
  const uint64_t free = limit - std::min(limit, used_memory());
  return std::min(free, machine_memory().value_or(free));
}

}  // namespace outrigger
