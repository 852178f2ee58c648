#include "api/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::api {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class ClusterFile : public testing::Test {
 protected:
  Cluster load(const std::string& text) const {
    std::ofstream(path_) << text;
    return load_cluster(path_);
  }
  std::string error_of(const std::string& text) const {
    try {
      load(text);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_{"outrigger-cluster"};
  const std::filesystem::path path_ = folder_.path() / "cluster.yaml";
};

TEST_F(ClusterFile, GivesWhatIsThereAndDefaultsForTheRest) {
  const Cluster cluster = load(
      "profile: p.json\nserver: {cores: 8, device: 40}\nworkers:\n"
      "  - {name: small, count: 4, cores: 2, leaveStep: 50}\n"
      "  - {name: big, change: {step: 9, link: 0.25}}\n");
  EXPECT_EQ(cluster.profile, "p.json");
  EXPECT_EQ(cluster.server.device, 40);
  EXPECT_EQ(cluster.server.megabits, 10'000);
  ASSERT_EQ(cluster.workers.size(), 2u);
  EXPECT_EQ(cluster.workers[0].count, 4);
  EXPECT_EQ(cluster.workers[0].leave_step, 50);
  EXPECT_EQ(cluster.workers[1].change->link, 0.25);
  EXPECT_EQ(cluster.workers[1].change->speed, 1);
  EXPECT_EQ(cluster.steps, 200);
}

TEST_F(ClusterFile, RefusesWithPlaceFieldValueAndWhatIsAllowed) {
  EXPECT_THAT(error_of("server: {cores: 0}\n"), HasSubstr("cluster.yaml:1:17: server.cores: 0"));
  EXPECT_THAT(error_of("server: {}\nworkers: [{count: 2}]\n"),
              HasSubstr("workers[0].name: missing"));
  EXPECT_THAT(error_of("server: {}\nworkers: [{name: a, core: 2}]\n"),
              HasSubstr("unknown field; did you mean cores?"));
  EXPECT_THAT(error_of("workers: []\n"), EndsWith("server: missing"));
  EXPECT_THAT(error_of("- 1\n"), HasSubstr("a cluster is needed"));
}

TEST_F(ClusterFile, RefusesWhatWouldNeverComeAbout) {
  const auto error = [&](const std::string& worker) {
    return error_of("server: {}\nsteps: 100\nworkers:\n  - {name: a, " + worker + "}\n");
  };
  EXPECT_EQ(error("joinStep: 99, leaveStep: 150"), "");
  EXPECT_EQ(error("joinStep: 10, change: {step: 10}, leaveStep: 11"), "");
  EXPECT_THAT(error("joinStep: 100"),
              EndsWith("workers[0].joinStep: 100 is never reached; at most 99, or more steps"));
  EXPECT_THAT(error("joinStep: 50, leaveStep: 50"),
              EndsWith("cluster.yaml:4:40: workers[0].leaveStep: 50 is too early; "
                       "workers[0].joinStep is 50; at least one more"));
  EXPECT_THAT(error("joinStep: 50, change: {step: 20}"),
              HasSubstr("workers[0].change.step: 20 is too early; workers[0].joinStep is 50"));
  EXPECT_THAT(error("leaveStep: 50, change: {step: 50}"),
              HasSubstr("workers[0].change.step: 50 is too late; workers[0].leaveStep is 50"));
  EXPECT_THAT(error_of("server: {change: {step: 300}}\n"),
              EndsWith("server.change.step: 300 is never reached; at most 199, or more steps"));
}

// A simulated job on a nearly stopped machine would not end.
TEST_F(ClusterFile, RefusesMachinesThatHardlyMove) {
  EXPECT_EQ(error_of("server: {cores: 0.001}\n"), "");
  EXPECT_THAT(error_of("server: {cores: 1e-9}\n"),
              EndsWith("server.cores: 1e-09 is too small; at least 0.001"));
  EXPECT_THAT(error_of("server: {change: {step: 9, speed: 1e-9}}\n"),
              HasSubstr("server.change.speed: 1e-09 is too small"));
  EXPECT_THAT(error_of("server: {}\nworkers: [{name: a, megabits: 1e-300}]\n"),
              HasSubstr("workers[0].megabits: 1e-300 is too small"));
  EXPECT_THAT(
      error_of("server: {}\nworkers: [{name: a, cores: 0.01, speed: 0.01}]\n"),
      EndsWith(
          "workers[0]: 0.0001 cores, by speed and change.speed, is too small; at least 0.001"));
}

}  // namespace
}  // namespace outrigger::api
