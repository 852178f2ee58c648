#include "cli/run_secrets.h"

#include <gtest/gtest.h>

#include <fstream>

namespace outrigger::cli {
namespace {

namespace fs = std::filesystem;

class RunSecretsTest : public testing::Test {
 protected:
  /// A folder in which a run was at it `age` ago.
  fs::path folder(const std::string& name, std::chrono::hours age, bool with_lock = true) const {
    const fs::path path = parent_.path() / name;
    fs::create_directories(path);
    std::ofstream(path / "join-token") << "secret";
    if (with_lock) std::ofstream(path / "lock") << "";
    fs::last_write_time(path, now_ - age);
    return path;
  }
  void remove() const { remove_left_folders(parent_.path(), now_); }

  const fs::file_time_type now_ = fs::file_time_type::clock::now();
  const TemporaryDirectory parent_;
};

TEST_F(RunSecretsTest, WhatAKilledRunLeftIsRemovedAfterADay) {
  const fs::path left = folder("outrigger-run.aaaaaa", std::chrono::hours(25));
  const fs::path young = folder("outrigger-run.bbbbbb", std::chrono::hours(23));
  remove();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(young / "join-token"));
}

TEST_F(RunSecretsTest, WhatSomebodyMayBeAtStays) {
  const fs::path held = folder("outrigger-run.aaaaaa", std::chrono::hours(100));
  const auto lock = FileLock::take(held / "lock");
  ASSERT_TRUE(lock.has_value());
  const fs::path unknown = folder("outrigger-run.bbbbbb", std::chrono::hours(100), false);
  const fs::path other = folder("other-run.cccccc", std::chrono::hours(100));
  const fs::path target = folder("target", std::chrono::hours(100));
  fs::create_directory_symlink(target, parent_.path() / "outrigger-run.dddddd");
  remove();
  for (const fs::path& path : {held, unknown, other, target})
    EXPECT_TRUE(fs::exists(path / "join-token")) << path;
}

TEST_F(RunSecretsTest, ARunsOwnFolderIsLockedWhileItLastsAndThenGone) {
  fs::path folder;
  {
    const RunSecrets secrets;
    folder = secrets.token_file().parent_path();
    EXPECT_TRUE(fs::exists(secrets.token_file()));
    EXPECT_FALSE(FileLock::take(folder / "lock").has_value());
  }
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace outrigger::cli
