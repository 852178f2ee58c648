#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "api/exit_codes.h"
#include "common/error.h"
#include "tests/unit/api/sample_job.h"
#include "tests/unit/cli/plan_command.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(PlanCommand, RefusesASplitThatARunWouldRefuse) {
  for (const char* split :
       {"{cut: pool1, sharePercent: 100, minServerPercent: 100}",
        "{cut: pool1, minServerPercent: 100}", "{cut: Auto, minServerPercent: 100}"}) {
    try {
      plan(split, {"--workers", "2"});
      ADD_FAILURE() << split;
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), HasSubstr("minServerPercent is 100")) << split;
    }
  }
}

TEST_F(PlanCommand, TakesNumbersOfWorkersThatCanBe) {
  for (const char* workers : {"--workers=-3", "--workers=10001"})
    EXPECT_THROW(plan("{cut: Auto}", {workers}), CLI::ValidationError) << workers;
}

TEST_F(PlanCommand, RefusesWhatIsNotBuiltBeforeItLooksForData) {
  std::string text = api::sample_with("path: faces", "urls: [https://host/a.tar]");
  text.replace(text.find("urls:"), 0, "format: WebDataset, ");
  try {
    run({write("shards.yaml", text).string()});
    FAIL() << "no machine would run it";
  } catch (const api::Failure& failure) {
    EXPECT_EQ(failure.code(), api::ExitCode::kNotSupported);
    EXPECT_THAT(failure.what(), HasSubstr("spec.data.train.urls"));
  }
}

TEST_F(PlanCommand, RefusesMoreWorkersThanItCanSearchOver) {
  try {
    plan("{cut: Auto}", {"--workers=1001"});
    FAIL() << "would search for minutes";
  } catch (const api::Failure& error) {
    EXPECT_EQ(error.code(), api::ExitCode::kBadUsage);
    EXPECT_THAT(error.what(), HasSubstr("--workers: 1001 are too many; at most 1000"));
  }
}

TEST_F(PlanCommand, TakesNumbersOfMachinesThatCanBe) {
  for (const char* option : {"--worker-cores", "--link", "--latency", "--server-link",
                             "--server-memory", "--worker-memory", "--server-price"}) {
    for (const char* value : {"nan", "inf", "1e300", "-1", "many"})
      EXPECT_THROW(plan("{cut: Auto}", {"--workers", "1", option, value}), CLI::ValidationError)
          << option << " " << value;
  }
}

TEST_F(PlanCommand, RefusesAClusterOrAProfileThatIsNotThere) {
  EXPECT_THROW(run({"--simulate", (folder_.path() / "absent.yaml").string()}),
               CLI::ValidationError);
  const auto cluster = write("cluster.yaml", "profile: absent.json\nserver: {cores: 1}\n");
  EXPECT_THROW(run({"--simulate", cluster.string()}), InvalidInput);
}

TEST_F(PlanCommand, RefusesAMountWithoutAFolderOrWithoutAClaim) {
  EXPECT_THROW(plan("{cut: Auto}", {"--mount", "faces"}), CLI::ValidationError);
  EXPECT_THROW(plan("{cut: Auto}", {"--mount", "face=/data"}), InvalidInput);
}

TEST_F(PlanCommand, NamesFileLineAndFieldOfWhatIsWrongWithTheSplit) {
  const std::string place = job_.string() + ":12:";
  EXPECT_THAT(refusal_of([&] { plan("{cut: conv9}", {}); }),
              HasSubstr(place + "16: spec.split.cut: cannot cut lenet5 at \"conv9\""));
  EXPECT_THAT(
      refusal_of([&] { plan("{cut: pool1, sharePercent: 100, minServerPercent: 99}", {}); }),
      HasSubstr(place));
  EXPECT_THAT(refusal_of([&] { plan("{cut: Auto, minServerPercent: 100}", {}); }),
              HasSubstr("; cut: Input leaves all"));
}

TEST_F(PlanCommand, RefusesWorkersWithoutMemoryForPixels) {
  EXPECT_THAT(refusal_of([&] {
                plan("{cut: Auto}", {"--workers", "2", "--worker-memory", "0.000001"});
              }),
              HasSubstr("--worker-memory: 1e-06 is too little"));
}

TEST_F(PlanCommand, TakesNumbersOfThreadsThatCanBe) {
  for (const char* threads : {"--threads=0", "--threads=-1", "--threads=4097"})
    EXPECT_THROW(plan("{cut: Auto}", {threads}), CLI::ValidationError) << threads;
}

TEST_F(PlanCommand, SaysWhatAClustersFileLacks) {
  EXPECT_THAT(refusal_of([&] {
                run({"--simulate", write("empty.yaml", "").string()});
              }),
              HasSubstr("empty.yaml:1:1: there is nothing in it; a cluster is needed"));
  const auto cluster = write("cluster.yaml", "profile: faces\nserver: {cores: 1}\n");
  EXPECT_THAT(refusal_of([&] {
                run({"--simulate", cluster.string()});
              }),
              HasSubstr(cluster.string() + ": profile: " + (folder_.path() / "faces").string() +
                        " is a folder"));
}

}  // namespace
}  // namespace outrigger::cli
