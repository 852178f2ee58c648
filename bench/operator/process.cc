#include "bench/operator/process.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::bench {
namespace {

std::string proc_file(pid_t process, const char* name) {
  return read_file("/proc/" + std::to_string(process) + "/" + name);
}

}  // namespace

std::chrono::duration<double> cpu_time(pid_t process) {
  const std::string text = proc_file(process, "stat");
  std::istringstream rest(text.substr(text.rfind(')') + 2));  // the name may hold spaces
  std::string skipped;
  for (int field = 3; field < 14; ++field) rest >> skipped;
  double user = 0;
  double system = 0;
  if (!(rest >> user >> system)) throw IoError("/proc/…/stat has no times: " + text);
  return std::chrono::duration<double>((user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

double resident_mebibytes(pid_t process) {
  std::istringstream lines(proc_file(process, "status"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  throw IoError("/proc/…/status has no VmRSS");
}

void use_environment_of_image() {
  const std::string file = OUTRIGGER_SOURCE_DIR "/docker/Dockerfile";
  const std::string text = read_file(file);
  const size_t begin = text.find(" AS operator\n");
  if (begin == text.npos) throw IoError(file + " has no image 'operator'");
  std::istringstream lines(text.substr(begin, text.find("\nFROM ", begin) - begin));
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (!line.starts_with("ENV ") || equals == line.npos) continue;
    setenv(line.substr(4, equals - 4).c_str(), line.c_str() + equals + 1, 1);
  }
}

}  // namespace outrigger::bench
