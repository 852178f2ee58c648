#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>

#include "api/launch.h"
#include "cli/local_run.h"
#include "common/error.h"
#include "common/file.h"
#include "gpu-server/run_lock.h"
#include "tests/unit/api/sample_job.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

TEST(RunCommand, HasCoresOfEmulatedMachinesOnlyWhereSomeAre) {
  const TemporaryDirectory folder("outrigger-run");
  const auto job = folder.path() / "job.yaml";
  std::ofstream(job) << api::sample_text();
  for (const char* option : {"--device-cores", "--worker-cores"})
    EXPECT_THROW(run_command({"run", job.string(), option, "4"}), CLI::RequiresError) << option;
}

TEST(RunCommand, RefusesCoresThatItsProgramsWouldRefuse) {
  for (const char* option : {"--threads", "--worker-threads"}) {
    for (const char* count : {"0", "-1", "4097"})
      EXPECT_THROW(run_command({"run", "job.yaml", option, count}), CLI::ValidationError)
          << option << " " << count;
  }
  EXPECT_THROW(run_command({"run", "job.yaml", "--log-level", "loud"}), CLI::ValidationError);
}

TEST(RunCommand, GivesEachServerAPartOfTheCores) {
  EXPECT_EQ(server_threads({}, 1, 8), 8);
  EXPECT_EQ(server_threads({}, 3, 8), 2);
  EXPECT_EQ(server_threads({}, 4, 2), 1);
  EXPECT_EQ(server_threads({.threads = 5}, 4, 8), 5) << "as it is told";
}

TEST(RunCommand, RefusesAMountThatTheJobHasNoClaimFor) {
  const TemporaryDirectory folder("outrigger-run");
  const auto job = folder.path() / "job.yaml";
  std::ofstream(job) << api::sample_text();
  EXPECT_THROW(run_command({"run", job.string(), "--output", folder.path().string(), "--mount",
                            "faces=" + folder.path().string()}),
               InvalidInput);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "faces")) << "before anything runs";
}

TEST(RunCommand, RefusesASplitBeforeItStartsAProcess) {
  const TemporaryDirectory folder("outrigger-run");
  const auto job = folder.path() / "job.yaml";
  std::ofstream(job) << api::sample_text() << "  split: {cut: nowhere}\n";
  const auto output = folder.path() / "runs";
  const std::string said = refusal_of([&] {
    run_command({"run", job.string(), "--output", output.string()});
  });
  EXPECT_NE(said.find(job.string() + ":"), std::string::npos) << said;
  EXPECT_NE(said.find("spec.split.cut: cannot cut"), std::string::npos) << said;
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST(RunCommand, ThatIsStoppedWhileItsServerStartsHasStopped) {
  constexpr int kStopped = 20;
  EXPECT_EQ(status_of_run(128 + SIGTERM, true), kStopped);
  EXPECT_EQ(status_of_run(128 + SIGTERM, false), 128 + SIGTERM) << "somebody else ended it";
  EXPECT_EQ(status_of_run(128 + SIGKILL, true), 128 + SIGKILL);
}

TEST(RunCommand, LeavesTheFolderOfARunThatIsAtItAlone) {
  const TemporaryDirectory folder("outrigger-run");
  const auto job = folder.path() / "job.yaml";
  std::ofstream(job) << api::sample_text();
  api::Launch launch;
  launch.output = folder.path();
  const gpu_server::RunLock at_it(api::sample_job(), launch);
  const auto endpoints = api::run_directory(api::sample_job(), launch) / "server.json";
  std::ofstream(endpoints) << "{}";
  EXPECT_THROW(run_command({"run", job.string(), "--output", folder.path().string()}),
               InvalidInput);
  EXPECT_TRUE(std::filesystem::exists(endpoints));
}

TEST(RunCommand, SaysOfAServerThatASignalKilledThatItWasKilled) {
  EXPECT_EQ(told_death(128 + SIGKILL, false), "was killed by signal 9 (out of memory?)");
  EXPECT_EQ(told_death(128 + SIGKILL, true), "was killed by signal 9 (out of memory?)");
  EXPECT_EQ(told_death(128 + SIGSEGV, false), "was killed by signal 11");
  EXPECT_EQ(told_death(128 + SIGTERM, false), "was killed by signal 15");
  EXPECT_EQ(told_death(128 + SIGTERM, true), "") << "it was told to";
  EXPECT_EQ(told_death(128 + SIGINT, true), "");
  for (const int status : {0, 13, 128}) EXPECT_EQ(told_death(status, false), "") << status;
}

}  // namespace
}  // namespace outrigger::cli
