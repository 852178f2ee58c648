#include "common/file_lock.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace outrigger {
namespace {

TEST(FileLock, HasOneHolderAtATime) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "lock";
  {
    const auto held = FileLock::take(file);
    EXPECT_TRUE(held);
    EXPECT_FALSE(FileLock::take(file));
  }
  EXPECT_TRUE(FileLock::take(file));
}

TEST(FileLock, ThatCannotBeMadeIsAnErrorAndNotAHeldOne) {
  EXPECT_THROW(static_cast<void>(FileLock::take("/nowhere/lock")), IoError);
}

}  // namespace
}  // namespace outrigger
