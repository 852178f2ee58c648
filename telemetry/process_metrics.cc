#include "telemetry/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace outrigger::telemetry {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Seconds since the epoch at which the machine started: the line "btime" of /proc/stat.
double boot_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    double value = 0;
    if (word == "btime" && file >> value) return value;
  }
  return 0;
}

// Field 22 of /proc/self/stat, in clock ticks since boot; fields are counted behind the name, which
// may hold spaces.
double start_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  size_t field = name_end + 1;
  for (int i = 3; i <= 22 && field != std::string::npos; ++i)
    field = line.find(' ', field + (i > 3 ? 1 : 0));
  if (field == std::string::npos) return 0;
  return boot_seconds() +
         std::stod(line.substr(field)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessUsage process_usage() {
  ProcessUsage usage;
  std::ifstream memory("/proc/self/statm");
  double total = 0;
  double resident = 0;
  if (memory >> total >> resident)
    usage.resident_bytes = resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rusage self{};
  if (::getrusage(RUSAGE_SELF, &self) == 0)
    usage.cpu_seconds = seconds(self.ru_utime) + seconds(self.ru_stime);
  static const double start = start_seconds();
  usage.start_seconds = start;
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) usage.open_files = static_cast<double>(std::distance(begin(files), end(files)));
  return usage;
}

}  // namespace outrigger::telemetry
