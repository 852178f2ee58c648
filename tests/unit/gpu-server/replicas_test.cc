#include "gpu-server/ranks/replicas.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "api/exit_codes.h"
#include "common/file.h"

namespace outrigger::gpu_server {
namespace {

using std::chrono::seconds;

api::TrainingJob job_of_two_ranks() {
  api::TrainingJob job;
  job.spec.server.replicas = 2;
  job.spec.startup_deadline = seconds(20);
  job.spec.progress_deadline = seconds(20);
  return job;
}

TEST(Replicas, OfOneAttemptMeetAndThoseOfAnotherAreTurnedAway) {
  const TemporaryDirectory folder;
  const auto token_file = folder.path() / "token";
  write_file_atomically(token_file, "token");
  const api::TrainingJob job = job_of_two_ranks();
  transport::Listener listener({"127.0.0.1", 0}, "token");
  const auto meet = [&](int rank, int64_t attempt) {
    const api::Launch launch{.rank = rank,
                             .replicas = 2,
                             .attempt = attempt,
                             .rendezvous = "127.0.0.1:" + std::to_string(listener.port()),
                             .token_file = token_file};
    std::vector<float> ones{1};
    meet_replicas(launch, job, listener, {})->all_reduce(ones);
    return ones.front();
  };
  std::jthread first([&] { EXPECT_EQ(meet(0, 2), 2); });
  try {
    meet(1, 1);
    ADD_FAILURE() << "a rank of the attempt before is taken in";
  } catch (const api::Failure& failure) {
    EXPECT_EQ(failure.code(), api::ExitCode::kPeerLost);
  }
  EXPECT_EQ(meet(1, 2), 2);
}

}  // namespace
}  // namespace outrigger::gpu_server
