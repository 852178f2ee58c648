#include "cli/kept_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <optional>

#include "common/error.h"

namespace outrigger::cli {
namespace {

using std::chrono::milliseconds;

/// Starts `program`, or fails to where there is none.
class KeptProcessTest : public testing::Test {
 protected:
  KeptProcess kept() {
    return KeptProcess("worker 0", [this] {
      ++tries_;
      if (!program_) throw IoError("starting it: Resource temporarily unavailable");
      ChildProcess child(*program_, {}, std::nullopt);
      id_ = child.id();
      return child;
    });
  }
  void wait_for_its_end() const {
    siginfo_t ignored;
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(id_), &ignored, WEXITED | WNOWAIT), 0);
  }

  const KeptProcess::Time start_{};
  std::optional<std::string> program_;
  int tries_ = 0;
  pid_t id_ = -1;
};

TEST_F(KeptProcessTest, ThatCannotBeStartedIsTriedAgainWithBackOff) {
  KeptProcess process = kept();
  EXPECT_FALSE(process.keep(start_));
  EXPECT_EQ(tries_, 1);
  process.keep(start_ + milliseconds(499));
  EXPECT_EQ(tries_, 1);
  process.keep(start_ + milliseconds(500));
  EXPECT_EQ(tries_, 2);
  process.keep(start_ + milliseconds(1499));
  EXPECT_EQ(tries_, 2) << "twice as long as before";
  program_ = "/bin/true";
  process.keep(start_ + milliseconds(1500));
  EXPECT_EQ(tries_, 3);
  wait_for_its_end();
  EXPECT_FALSE(process.keep(start_ + milliseconds(60'000)));
  EXPECT_EQ(tries_, 3) << "it has ended well";
}

TEST_F(KeptProcessTest, ThatFailedIsStartedAgainWithBackOff) {
  program_ = "/bin/false";
  KeptProcess process = kept();
  process.keep(start_);
  wait_for_its_end();
  EXPECT_TRUE(process.keep(start_));
  EXPECT_FALSE(process.keep(start_ + milliseconds(499)));
  EXPECT_EQ(tries_, 1);
  process.keep(start_ + milliseconds(500));
  EXPECT_EQ(tries_, 2);
}

}  // namespace
}  // namespace outrigger::cli
