#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "api/exit_codes.h"
#include "common/error.h"
#include "tests/unit/cli/plan_command.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(PlanCommand, SimulatesADescribedClusterWithoutTheJobOnceItIsMeasured) {
  write("profile.json", plan("{cut: Auto}", {"-o", "json"}));
  const auto cluster = write("cluster.yaml",
                             "profile: profile.json\nserver: {cores: 1, price: 1800}\nsteps: 60\n"
                             "workers:\n"
                             "  - {name: big, count: 2, cores: 4, price: 900}\n"
                             "  - {name: gone, leaveStep: 20, price: 1e6}\n");
  const json told = json::parse(run({"--simulate", cluster.string(), "-o", "json"}));
  EXPECT_EQ(told["steps"], 60);
  EXPECT_GT(told["imagesPerSecond"].get<double>(), 0);
  EXPECT_NEAR(told["epoch"]["seconds"].get<double>(), 18 / told["imagesPerSecond"].get<double>(),
              1e-9);
  EXPECT_NEAR(told["epoch"]["cost"].get<double>(), told["epoch"]["seconds"].get<double>(), 1e-9)
      << "half of 3600 an hour each for the server and the workers that stay";
  EXPECT_NEAR(told["devicePercent"].get<double>() + told["stallPercent"].get<double>() +
                  told["stallPercentByCause"]["Optimizer"].get<double>(),
              100, 0.5);
  EXPECT_GE(told["secondsPerStep"]["p99"], told["secondsPerStep"]["median"]);
  EXPECT_EQ(told["workers"][0]["workers"], 2);
  const std::string text = run({"--simulate", cluster.string()});
  EXPECT_THAT(text, HasSubstr("60 steps in virtual time"));
  EXPECT_THAT(text, HasSubstr("images/s"));
}

TEST_F(PlanCommand, MeasuresTheJobForAClusterWithoutAProfile) {
  const auto cluster = write("cluster.yaml", "server: {cores: 2, device: 50}\nsteps: 20\n");
  const json told =
      json::parse(plan("{cut: Auto}", {"--simulate", cluster.string(), "-o", "json"}));
  EXPECT_EQ(told["plan"], "cut Input");
  try {
    run({"--simulate", cluster.string()});
    FAIL() << "neither job nor profile";
  } catch (const api::Failure& error) {
    EXPECT_EQ(error.code(), api::ExitCode::kBadUsage);
    EXPECT_THAT(error.what(), HasSubstr(cluster.string() + ": profile is missing"));
  }
}

TEST_F(PlanCommand, SimulatesWhatMemoryHoldsAndAServerThatGetsBusy) {
  write("profile.json", plan("{cut: Auto}", {"-o", "json"}));
  const auto simulate = [&](const std::string& server) {
    const auto cluster =
        write("cluster.yaml", "profile: profile.json\nsteps: 120\njitterPercent: 0\n" + server);
    return json::parse(run({"--simulate", cluster.string(), "-o", "json"}));
  };
  const double quiet = simulate("server: {cores: 1}\n")["secondsPerStep"]["mean"];
  const double busy =
      simulate("server: {cores: 1, change: {step: 1, speed: 0.5}}\n")["secondsPerStep"]["mean"];
  EXPECT_NEAR(busy, 2 * quiet, 0.05 * quiet);
  try {
    simulate("server: {cores: 1, gigabytes: 0.00001}\n");
    FAIL() << "nothing fits";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("server.gigabytes: no plan fits into the memory"));
  }
  const json cramped = simulate(
      "server: {cores: 1}\nworkers: [{name: small, count: 4, cores: 8, gigabytes: 0.00003}]\n");
  EXPECT_THAT(cramped["plan"].get<std::string>(), HasSubstr("cut Input"));
  // More threads have more leases in hand.
  EXPECT_THROW(simulate("server: {cores: 1}\nworkers: [{cores: 64, gigabytes: 0.00003}]\n"),
               InvalidInput);
}

TEST_F(PlanCommand, TakesAGpusProfileForSecondsOfThatGpu) {
  json measured = json::parse(plan("{cut: Auto}", {"-o", "json"}));
  json& profile = measured["profile"];
  profile["decode"] = profile["optimizer"] = 1e-6;
  for (json& cut : profile["cuts"]) {
    cut["head"] = 0.01;
    cut["deviceStem"] = 0;
  }
  write("profile.json", measured.dump());
  const auto seconds = [&](const std::string& server) -> double {
    const auto cluster = write("cluster.yaml",
                               "profile: profile.json\nsteps: 20\njitterPercent: 0\n"
                               "server: " +
                                   server + "\n");
    return json::parse(
        run({"--simulate", cluster.string(), "-o", "json"}))["secondsPerStep"]["mean"];
  };
  EXPECT_NEAR(seconds("{cores: 1}"), 8 * 0.01, 0.001);
  EXPECT_NEAR(seconds("{cores: 8}"), 8 * 0.01, 0.001) << "its cores make no GPU faster";
  EXPECT_NEAR(seconds("{cores: 8, device: 2}"), 4 * 0.01, 0.001) << "two such GPUs";
}

TEST_F(PlanCommand, ADescribedClusterLeavesNothingOfTheMachinesToOptions) {
  const auto cluster = write("cluster.yaml", "server: {cores: 1}\n");
  for (const char* option : {"--workers", "--link", "--server-link", "--worker-price"})
    EXPECT_THROW(run({"--simulate", cluster.string(), option, "2"}), CLI::ExcludesError) << option;
}

TEST_F(PlanCommand, AProfileLeavesNothingOfTheJobToTheCommandLine) {
  write("profile.json", plan("{cut: Auto}", {"-o", "json"}));
  const auto cluster =
      write("cluster.yaml", "profile: profile.json\nserver: {cores: 1}\nsteps: 20\n").string();
  const std::vector<std::vector<std::string>> of_measuring{
      {"--threads", "1"}, {"--device", "cpu"}, {"--mount", "faces=/data"}, {"other.yaml"}};
  for (const std::vector<std::string>& more : of_measuring) {
    std::vector<std::string> arguments{"--simulate", cluster};
    arguments.insert(arguments.end(), more.begin(), more.end());
    try {
      run(arguments);
      ADD_FAILURE() << more.front() << " was taken and told nobody of";
    } catch (const api::Failure& error) {
      EXPECT_EQ(error.code(), api::ExitCode::kBadUsage);
      EXPECT_THAT(error.what(), HasSubstr(more.front() + ": " + cluster + " names the profile"));
    }
  }
  EXPECT_THROW(run({"--simulate", cluster, "--layers"}), CLI::ExcludesError);
}

TEST_F(PlanCommand, SimulatesTheFirstStepsWithinABoundOfBytesAsARunDoes) {
  write("profile.json", plan("{cut: Auto, maxBytesPerSecond: 1000}", {"-o", "json"}));
  const auto cluster = write("cluster.yaml",
                             "profile: profile.json\nserver: {cores: 1}\nsteps: 10\n"
                             "workers: [{name: idle, count: 2}]\n");
  const json told = json::parse(run({"--simulate", cluster.string(), "-o", "json"}));
  EXPECT_EQ(told["localInputPercent"], 100);
  EXPECT_LT(told["workers"][0]["microBatches"], 8) << "of 80, in the place of a late one";
  EXPECT_EQ(told["stallCause"], "None");
}

TEST_F(PlanCommand, RefusesWorkersThatHoldNoPixels) {
  write("profile.json", plan("{cut: Auto}", {"-o", "json"}));
  const auto cluster = write("cluster.yaml",
                             "profile: profile.json\nserver: {cores: 1}\nsteps: 20\n"
                             "workers: [{name: big}, {name: tiny, gigabytes: 0.000001}]\n");
  try {
    run({"--simulate", cluster.string()});
    FAIL() << "a kilobyte";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("workers[1].gigabytes: 1e-06 is too little for the pixels "
                                        "that a worker makes at a time; at least 0.000007"));
  }
}

}  // namespace
}  // namespace outrigger::cli
