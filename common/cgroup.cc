#include "common/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace outrigger {
namespace {

namespace fs = std::filesystem;

std::optional<double> quota_of_second_version(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  return std::stod(quota) / period;
}

std::optional<double> quota_of_first_version(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0)
    return std::nullopt;
  return quota / period;
}

/// The path of this process's group in the hierarchy that limits cores: lines are
/// "NUMBER:CONTROLLERS:PATH", without controllers for the second version.
std::string path_in(std::ifstream own, bool first_version) {
  for (std::string line; std::getline(own, line);) {
    const size_t controllers = line.find(':') + 1;
    const size_t path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = "," + line.substr(controllers, path - controllers - 1) + ",";
    const bool wanted = first_version ? names.find(",cpu,") != std::string::npos : names == ",,";
    if (wanted) return line.substr(path);
  }
  return "/";
}

/// From the mount's root, which is a container's own group, down to the process's.
template <typename Quota>
std::optional<double> least(const fs::path& root, const std::string& path, Quota quota_of) {
  std::optional<double> cores = quota_of(root);
  fs::path group = root;
  for (const fs::path& part : fs::path(path).relative_path()) {
    group /= part;
    if (const auto quota = quota_of(group)) cores = std::min(cores.value_or(*quota), *quota);
  }
  return cores;
}

}  // namespace

std::optional<double> cgroup_cores(const fs::path& mount, const fs::path& own) {
  const bool first_version = fs::exists(mount / "cpu");
  const std::string path = path_in(std::ifstream(own), first_version);
  return first_version ? least(mount / "cpu", path, quota_of_first_version)
                       : least(mount, path, quota_of_second_version);
}

}  // namespace outrigger
