#include "common/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace outrigger {
namespace {

namespace fs = std::filesystem;

std::optional<double> cores_of_second_version(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  return std::stod(quota) / period;
}

std::optional<double> cores_of_first_version(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0)
    return std::nullopt;
  return quota / period;
}

/// The number in a file of a group; absent where there is none: "max".
std::optional<double> number_in(const fs::path& file) {
  double number = 0;
  if (!(std::ifstream(file) >> number) || number <= 0) return std::nullopt;
  return number;
}

std::optional<double> memory_of_second_version(const fs::path& group) {
  return number_in(group / "memory.max");
}

std::optional<double> memory_of_first_version(const fs::path& group) {
  return number_in(group / "memory.limit_in_bytes");
}

/// The path of this process's group in the hierarchy of a controller: lines are
/// "NUMBER:CONTROLLERS:PATH", without controllers for the second version.
std::string path_in(std::ifstream own, const std::string& controller, bool first_version) {
  for (std::string line; std::getline(own, line);) {
    const size_t controllers = line.find(':') + 1;
    const size_t path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = "," + line.substr(controllers, path - controllers - 1) + ",";
    const bool wanted =
        first_version ? names.find("," + controller + ",") != std::string::npos : names == ",,";
    if (wanted) return line.substr(path);
  }
  return "/";
}

/// From the mount's root, which is a container's own group, down to the process's.
template <typename Limit>
std::optional<double> least(const fs::path& root, const std::string& path, Limit limit_of) {
  std::optional<double> least = limit_of(root);
  fs::path group = root;
  for (const fs::path& part : fs::path(path).relative_path()) {
    group /= part;
    if (const auto limit = limit_of(group)) least = std::min(least.value_or(*limit), *limit);
  }
  return least;
}

template <typename First, typename Second>
std::optional<double> limit_by(const std::string& controller, const fs::path& mount,
                               const fs::path& own, First first, Second second) {
  const bool first_version = fs::exists(mount / controller);
  const std::string path = path_in(std::ifstream(own), controller, first_version);
  return first_version ? least(mount / controller, path, first) : least(mount, path, second);
}

}  // namespace

std::optional<double> cgroup_cores(const fs::path& mount, const fs::path& own) {
  return limit_by("cpu", mount, own, cores_of_first_version, cores_of_second_version);
}

std::optional<double> cgroup_memory(const fs::path& mount, const fs::path& own) {
  return limit_by("memory", mount, own, memory_of_first_version, memory_of_second_version);
}

}  // namespace outrigger
