#include "gpu-server/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/file.h"
#include "gpu-server/doors.h"
#include "tests/unit/api/sample_job.h"

namespace outrigger::gpu_server {
namespace {

class RunLockTest : public testing::Test {
 protected:
  api::Launch launch(const std::string& output) const {
    api::Launch launch;
    launch.output = folder_.path() / output;
    launch.checkpoint = folder_.path() / "checkpoints";
    return launch;
  }

  const TemporaryDirectory folder_;
  const api::TrainingJob job_ = api::sample_job();
};

TEST_F(RunLockTest, RefusesASecondRunInEitherFolder) {
  const RunLock first(job_, launch("out"));
  api::Launch same_output = launch("out");
  same_output.checkpoint = folder_.path() / "others";
  for (const api::Launch& second : {launch("elsewhere"), same_output}) {
    EXPECT_THAT([&] { RunLock(job_, second); },
                testing::ThrowsMessage<InvalidInput>(testing::HasSubstr("another run writes to")));
  }
}

TEST_F(RunLockTest, TakesOneFolderForBothOnce) {
  api::Launch both = launch("out");
  both.checkpoint = both.output;
  EXPECT_NO_THROW(RunLock(job_, both));
}

TEST_F(RunLockTest, LetsTheOtherRanksAndALaterAttemptIn) {
  const RunLock first(job_, launch("out"));
  api::Launch rank = launch("out");
  rank.rank = 1;
  api::Launch attempt = launch("out");
  attempt.attempt = 1;
  EXPECT_NO_THROW(RunLock(job_, rank));
  EXPECT_NO_THROW(RunLock(job_, attempt));
}

TEST_F(RunLockTest, KeepsALiveRunsPortsFromTheNextLauncher) {
  const auto endpoints = api::run_directory(job_, launch("out")) / endpoints_name(0);
  {
    const RunLock live(job_, launch("out"));
    write_file_atomically(endpoints, "{}");
    EXPECT_THROW(remove_former_endpoints(job_, launch("out")), InvalidInput);
    EXPECT_TRUE(std::filesystem::exists(endpoints));
  }
  remove_former_endpoints(job_, launch("out"));
  EXPECT_FALSE(std::filesystem::exists(endpoints));
}

}  // namespace
}  // namespace outrigger::gpu_server
