#include "gpu-server/ranks/rank_processes.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

TEST(RankProcesses, ShareTheMachineThatTheyStartOn) {
  const api::Launch all{
      .rank = 4, .replicas = 8, .ranks = 4, .port = 29400, .status_port = 0, .threads = 6};
  const api::Launch first = launch_of_rank(all, 0);
  const api::Launch last = launch_of_rank(all, 3);
  EXPECT_EQ(first.rank, 4);
  EXPECT_EQ(last.rank, 7);
  EXPECT_EQ(last.port, 29403);
  EXPECT_EQ(last.status_port, 0) << "any that is free";
  EXPECT_EQ(first.threads, 2);
  EXPECT_EQ(last.threads, 1);
  for (const api::Launch& one : {first, last}) {
    EXPECT_EQ(one.ranks, 1);
    EXPECT_EQ(one.ranks_on_machine, 4) << "a quarter of its memory is for each";
  }
}

TEST(RankProcesses, LeaveMemoryToThoseOfOtherLaunches) {
  EXPECT_EQ(launch_of_rank({.replicas = 8, .ranks = 2, .ranks_on_machine = 8}, 1).ranks_on_machine,
            8);
}

}  // namespace
}  // namespace outrigger::gpu_server
