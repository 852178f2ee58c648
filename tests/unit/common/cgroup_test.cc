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

}  // namespace
}  // namespace outrigger
