#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "common/file.h"
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

}  // namespace
}  // namespace outrigger::cli
