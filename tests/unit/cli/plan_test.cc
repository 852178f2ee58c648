#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "tests/unit/cli/plan_command.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(PlanCommand, ScoresEveryCutAndNamesTheBest) {
  const json told =
      json::parse(plan("{cut: Auto}", {"--workers", "2", "--threads", "1", "-o", "json"}));
  EXPECT_EQ(told["workers"], 2);
  ASSERT_GE(told["cuts"].size(), 2u);
  EXPECT_EQ(told["cuts"][0]["cut"], "Input");
  const auto& best = told["cuts"][told["choice"].get<size_t>()];
  for (const json& row : told["cuts"]) {
    // Of plans that take about the same it is the one that slower workers disturb least.
    EXPECT_GE(row["secondsPerStep"].get<double>(), best["secondsPerStep"].get<double>() / 1.05);
    EXPECT_GT(row["headCoreMilliseconds"].get<double>(), 0);
  }
  // Whatever their cuts: the best of them is the one that is named.
  const auto& plans = told["best"];
  ASSERT_GE(plans.size(), 2u);
  EXPECT_LE(plans.size(), 5u);
  EXPECT_NEAR(plans[0]["secondsPerStep"].get<double>(), best["secondsPerStep"].get<double>(),
              0.05 * best["secondsPerStep"].get<double>());
  for (size_t i = 1; i < plans.size(); ++i)
    EXPECT_GE(plans[i]["secondsPerStep"].get<double>(),
              plans[i - 1]["secondsPerStep"].get<double>());
}

TEST_F(PlanCommand, SaysWhatTheServerMakesItselfWhereLinksAreNarrow) {
  const std::vector<std::string> narrow{"--workers", "2", "--threads", "1", "--link", "0.1"};
  auto as_json = narrow;
  as_json.insert(as_json.end(), {"-o", "json"});
  const json row = json::parse(plan("{cut: Auto}", as_json))["cuts"][0];
  EXPECT_EQ(row["cut"], "Input");
  EXPECT_GT(row["localInputPercent"].get<double>(), 50);
  // Of 16 photos of 28x28 at most what is not made there.
  EXPECT_LE(row["bytesToServer"].get<double>(),
            16 * 784 * (1 - row["localInputPercent"].get<double>() / 100) + 1);
  EXPECT_THAT(plan("{cut: Auto}", narrow), HasSubstr("local: of the pixels"));
  const json alone = json::parse(plan("{cut: Auto}", {"--workers", "0", "-o", "json"}));
  EXPECT_EQ(alone["cuts"][0]["bytesToServer"].get<double>(), 0);
}

TEST_F(PlanCommand, AFixedPlanKeepsNothingLocal) {
  const std::vector<std::string> narrow{"--workers", "2", "--threads", "1", "--link", "0.1"};
  auto as_json = narrow;
  as_json.insert(as_json.end(), {"-o", "json"});
  for (const char* split : {"{cut: Input}", "{cut: pool1, sharePercent: 50}"}) {
    const json told = json::parse(plan(split, as_json));
    for (const json& row : told["cuts"]) EXPECT_EQ(row["localInputPercent"], 0) << split;
    for (const json& one : told["best"]) EXPECT_EQ(one["localInputs"], 0) << split;
  }
  EXPECT_THAT(plan("{cut: Input}", narrow),
              HasSubstr("`run` keeps to the plan that the job fixes"));
  EXPECT_THAT(plan("{cut: Input}", {"--workers", "0"}), testing::Not(HasSubstr("cut: Auto")));
}

TEST_F(PlanCommand, SharesWorkersOutOverRanksAndPaysForEachServer) {
  const std::string two = "{cut: Auto}\n  server: {replicas: 2}";
  const std::string measured = plan(two, {"--workers", "5", "--threads", "1", "--server-price",
                                          "3600", "--worker-price", "360", "-o", "json"});
  const json told = json::parse(measured);
  EXPECT_EQ(told["ranks"], 2);
  EXPECT_EQ(told["workers"], 5);
  EXPECT_EQ(told["profile"]["microBatches"], 4);
  for (const json& row : told["cuts"]) {
    const double seconds = row["secondsPerStep"].get<double>() * 18 / 16;
    EXPECT_NEAR(row["epoch"]["cost"].get<double>(), seconds * (2 + 5 * 0.1), 1e-9);
    EXPECT_NEAR(row["imagesPerSecond"].get<double>(), 16 / row["secondsPerStep"].get<double>(),
                1e-6)
        << "of both";
  }
  std::vector<size_t> counts;
  for (const json& row : told["byWorkers"]) counts.push_back(row["workers"]);
  EXPECT_THAT(counts, testing::ElementsAre(0, 2, 4, 5));
  EXPECT_THROW(plan(two, {"--workers", "1"}), InvalidInput) << "a rank has nobody";
  EXPECT_THAT(plan(two, {"--workers", "5"}), HasSubstr("With 5 workers for 2 ranks"));

  write("profile.json", measured);
  const auto cluster = write("cluster.yaml",
                             "profile: profile.json\nserver: {cores: 1, price: 1800}\nsteps: 20\n"
                             "workers: [{name: some, count: 4, price: 900}]\n");
  const json simulated = json::parse(run({"--simulate", cluster.string(), "-o", "json"}));
  EXPECT_EQ(simulated["workers"][0]["workers"], 2);
  EXPECT_NEAR(simulated["epoch"]["cost"].get<double>(),
              2 * simulated["epoch"]["seconds"].get<double>(), 1e-9)
      << "two servers at half of 3600 an hour, four workers at a quarter";
  write("cluster.yaml",
        "profile: profile.json\nserver: {cores: 1}\nworkers: [{name: some, count: 1}]\n");
  EXPECT_THROW(run({"--simulate", cluster.string()}), InvalidInput) << "one for two ranks";
}

TEST_F(PlanCommand, ReckonsWithTheCoresThatMicroBatchesKeepAtWork) {
  const std::string fixed = "{cut: pool1, sharePercent: 50}";
  const auto with = [&](const char* cores) {
    return plan(fixed, {"--workers", "1", "--worker-cores", cores, "--threads", "1"});
  };
  EXPECT_THAT(with("16"), HasSubstr("Of each worker's 16 cores stems keep 2 at work, with "
                                    "micro-batches of 2: more workers of fewer cores"));
  EXPECT_THAT(with("2"), testing::Not(HasSubstr("at work")));

  write("profile.json", plan(fixed, {"--threads", "1", "-o", "json"}));
  const auto seconds = [&](const std::string& cores) {
    const auto cluster = write("cluster.yaml", "profile: profile.json\nserver: {cores: " + cores +
                                                   "}\nsteps: 40\njitterPercent: 0\n"
                                                   "workers: [{name: one, cores: " +
                                                   cores + "}]\n");
    const json told = json::parse(run({"--simulate", cluster.string(), "-o", "json"}));
    return told["secondsPerStep"]["mean"].get<double>();
  };
  const double two = seconds("2");
  EXPECT_NEAR(seconds("16"), two, 0.3 * two) << "two blocks";
}

TEST_F(PlanCommand, SaysWhichCutsTheJobsBoundsExclude) {
  const auto printed = [&](const std::string& split) { return plan(split, {"--workers", "2"}); };
  EXPECT_THAT(printed("{cut: Auto, maxBytesPerSecond: 1000}"),
              HasSubstr("pool1                does not fit: moves more bytes a second"));
  const std::string share = printed("{cut: Auto, sharePercent: 5}");
  EXPECT_THAT(share, HasSubstr("pool1                does not fit: no stem of a step is away"));
  EXPECT_THAT(share, HasSubstr("spec.split.sharePercent: 5 of 8 micro-batches"));
  EXPECT_THAT(printed("{cut: Auto}"), testing::Not(HasSubstr("does not fit")));
}

TEST_F(PlanCommand, TellsWhatAnEpochCostsAndHowManyWorkersPay) {
  const std::vector<std::string> priced{"--workers",      "3",    "--threads",      "1",
                                        "--server-price", "3600", "--worker-price", "360"};
  auto as_json = priced;
  as_json.insert(as_json.end(), {"-o", "json"});
  const json told = json::parse(plan("{cut: Auto}", as_json));
  for (const json& row : told["cuts"]) {
    const double seconds = row["secondsPerStep"].get<double>() * 18 / 16;  // photos, of a batch
    EXPECT_NEAR(row["epoch"]["seconds"].get<double>(), seconds, 1e-9);
    EXPECT_NEAR(row["epoch"]["cost"].get<double>(), seconds * (1 + 3 * 0.1), 1e-9);
  }
  std::vector<size_t> counts;
  for (const json& row : told["byWorkers"]) counts.push_back(row["workers"]);
  EXPECT_THAT(counts, testing::ElementsAre(0, 1, 2, 3));
  const json& alone = told["byWorkers"][0];
  EXPECT_NEAR(alone["epoch"]["cost"].get<double>(), alone["epoch"]["seconds"].get<double>(), 1e-9);
  EXPECT_THAT(plan("{cut: Auto}", priced), HasSubstr("cost/epoch"));
  EXPECT_THAT(plan("{cut: Auto}", {"--workers", "3"}), testing::Not(HasSubstr("cost")));
}

TEST_F(PlanCommand, TellsWhatEachLayerTakes) {
  const json told = json::parse(plan("{cut: Auto}", {"--workers", "0", "-o", "json"}));
  double kept = 0;
  double weights = 0;
  for (const json& layer : told["profile"]["layers"]) {
    kept += layer["kept"].get<double>();
    weights += layer["weights"].get<double>();
  }
  EXPECT_EQ(kept, told["cuts"][0]["serverMemory"]["activations"].get<double>());
  EXPECT_EQ(weights, told["profile"]["parameters"].get<double>());
  EXPECT_THAT(plan("{cut: Auto}", {"--workers", "0", "--layers"}), HasSubstr("kept MB"));
}

TEST_F(PlanCommand, LeavesOutWhatMemoryDoesNotHold) {
  const json roomy = json::parse(plan("{cut: pool1}", {"--workers", "2", "-o", "json"}));
  ASSERT_EQ(roomy["cuts"].size(), 2u);
  EXPECT_GT(roomy["cuts"][1]["workerMemory"]["total"].get<double>(),
            roomy["cuts"][0]["workerMemory"]["total"].get<double>());
  EXPECT_GT(roomy["cuts"][0]["serverMemory"]["activations"].get<double>(), 0);
  const std::vector<std::string> tight{"--workers", "2", "--worker-memory", "0.00001"};
  EXPECT_THAT(plan("{cut: pool1}", tight), HasSubstr("pool1                does not fit: needs"));
  try {
    plan("{cut: Auto}", {"--server-memory", "0.00001"});
    FAIL() << "nothing fits";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("cut Input needs"));
    EXPECT_THAT(error.what(), HasSubstr("microBatchSize"));
  }
}

TEST_F(PlanCommand, WithoutWorkersOnlyTheServerIsLeft) {
  const json told = json::parse(plan("{cut: Auto}", {"--workers", "0", "-o", "json"}));
  EXPECT_EQ(told["cuts"].size(), 1u);
  const std::string text = plan("{cut: Auto}", {"--workers", "0"});
  EXPECT_THAT(text, HasSubstr("reckoned without workers: --workers N"));
  EXPECT_THAT(text, testing::Not(HasSubstr("would not pay")));
}

TEST_F(PlanCommand, AllWorkersShareTheServersNetworkCard) {
  const json told = json::parse(plan(
      "{cut: Auto}", {"--workers", "2", "--threads", "1", "--server-link", "0.2", "-o", "json"}));
  EXPECT_GT(told["cuts"][0]["localInputPercent"].get<double>(), 50);
}

TEST_F(PlanCommand, ShowsOnlyTheCutThatTheJobNames) {
  const json told = json::parse(plan("{cut: pool1}", {"--workers", "2", "-o", "json"}));
  ASSERT_EQ(told["cuts"].size(), 2u);
  EXPECT_EQ(told["cuts"][1]["cut"], "pool1");
}

}  // namespace
}  // namespace outrigger::cli
