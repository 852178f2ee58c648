#include "common/cgroup.h"

#include <gtest/gtest.h>

#include <string>

#include "common/file.h"

namespace outrigger {
namespace {

class Cgroup : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const auto path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path, text);
  }
  std::optional<double> cores() const {
    return cgroup_cores(folder_.path() / "mount", folder_.path() / "own");
  }
  std::optional<double> memory() const {
    return cgroup_memory(folder_.path() / "mount", folder_.path() / "own");
  }
  TemporaryDirectory folder_;
};

TEST_F(Cgroup, WithoutAQuotaHasNone) {
  EXPECT_EQ(cores(), std::nullopt);
  write("own", "0::/\n");
  write("mount/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), std::nullopt);
}

TEST_F(Cgroup, OfAContainerIsTheMountsRoot) {
  write("own", "0::/\n");
  write("mount/cpu.max", "150000 100000\n");
  EXPECT_EQ(cores(), 1.5);
  write("own", "0::/not/to/be/seen/here\n");
  EXPECT_EQ(cores(), 1.5);
}

TEST_F(Cgroup, TakesTheLeastOfThoseAroundTheProcess) {
  write("own", "0::/slice/job\n");
  write("mount/cpu.max", "max 100000\n");
  write("mount/slice/cpu.max", "2500 10000\n");
  write("mount/slice/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(cores(), 0.25);
}

TEST_F(Cgroup, OfTheFirstVersionHasAHierarchyForCores) {
  write("own", "5:memory:/other\n3:cpu,cpuacct:/job\n0::/none\n");
  write("mount/cpu/cpu.cfs_quota_us", "-1\n");
  write("mount/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), std::nullopt);
  write("mount/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("mount/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 0.5);
}

TEST_F(Cgroup, MemoryIsTheLeastOfThoseAroundTheProcessToo) {
  write("own", "0::/slice/job\n");
  write("mount/memory.max", "max\n");
  EXPECT_EQ(memory(), std::nullopt);
  write("mount/slice/memory.max", "1000000\n");
  write("mount/slice/job/memory.max", "2000000\n");
  EXPECT_EQ(memory(), 1e6);
}

TEST_F(Cgroup, MemoryOfTheFirstVersionHasItsOwnHierarchy) {
  write("own", "5:memory:/box\n3:cpu,cpuacct:/job\n");
  write("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("mount/memory/box/memory.limit_in_bytes", "3000000\n");
  EXPECT_EQ(memory(), 3e6);
}

}  // namespace
}  // namespace outrigger
