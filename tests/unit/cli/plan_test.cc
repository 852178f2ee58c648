#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <fstream>
#include <nlohmann/json.hpp>

#include "api/exit_codes.h"
#include "common/error.h"
#include "common/file.h"
#include "data/synthetic/faces.h"
#include "tests/unit/api/sample_job.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// A small job over a few drawn faces, and what `plan` prints of it.
class PlanCommand : public testing::Test {
 protected:
  PlanCommand() {
    data::FacesOptions faces;
    faces.identities = 3;
    faces.train_per_identity = 6;
    faces.validation_per_identity = 1;
    faces.size = 32;
    data::generate_faces(faces, folder_.path() / "faces");
  }

  std::string plan(const std::string& split, std::vector<std::string> more) const {
    std::ofstream(job_) << "apiVersion: outrigger.dev/v1alpha1\nkind: TrainingJob\n"
                           "metadata: {name: faces}\nspec:\n  model: {name: lenet5}\n"
                           "  data:\n    volumeClaimName: faces\n    train: {path: /data/train}\n"
                           "    image: {height: 28, width: 28, channels: 1}\n"
                           "  training: {epochs: 3, batchSize: 16, microBatchSize: 2, schedule: "
                           "{constant: {base: 0.1}}}\n  output: {path: runs}\n  split: "
                        << split << "\n";
    more.insert(more.begin(),
                {job_.string(), "--mount", "faces=" + (folder_.path() / "faces").string()});
    return run(std::move(more));
  }

  static std::string run(std::vector<std::string> more) {
    more.insert(more.begin(), "plan");
    return output_of(std::move(more));
  }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }

  TemporaryDirectory folder_{"outrigger-plan"};
  const std::filesystem::path job_ = folder_.path() / "job.yaml";
};

TEST_F(PlanCommand, ScoresEveryCutAndNamesTheBest) {
  const json told =
      json::parse(plan("{cut: Auto}", {"--workers", "2", "--threads", "1", "-o", "json"}));
  EXPECT_EQ(told["workers"], 2);
  ASSERT_GE(told["cuts"].size(), 2u);
  EXPECT_EQ(told["cuts"][0]["cut"], "Input");
  const auto& best = told["cuts"][told["choice"].get<size_t>()];
  for (const json& row : told["cuts"]) {
    EXPECT_GE(row["secondsPerStep"].get<double>(), best["secondsPerStep"].get<double>());
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
  const std::vector<std::string> narrow{"--workers", "2", "--threads", "1", "--link", "0.05"};
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
  const std::vector<std::string> narrow{"--workers", "2", "--threads", "1", "--link", "0.05"};
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

TEST_F(PlanCommand, SaysWhichCutsTheJobsBoundsExclude) {
  const auto printed = [&](const std::string& split) { return plan(split, {"--workers", "2"}); };
  EXPECT_THAT(printed("{cut: Auto, maxBytesPerSecond: 1000}"),
              HasSubstr("pool1                does not fit: moves more bytes a second"));
  const std::string share = printed("{cut: Auto, sharePercent: 5}");
  EXPECT_THAT(share, HasSubstr("pool1                does not fit: no stem of a step is away"));
  EXPECT_THAT(share, HasSubstr("spec.split.sharePercent: 5 of 8 micro-batches"));
  EXPECT_THAT(printed("{cut: Auto}"), testing::Not(HasSubstr("does not fit")));
}

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

TEST_F(PlanCommand, AllWorkersShareTheServersNetworkCard) {
  const json told = json::parse(plan(
      "{cut: Auto}", {"--workers", "2", "--threads", "1", "--server-link", "0.05", "-o", "json"}));
  EXPECT_GT(told["cuts"][0]["localInputPercent"].get<double>(), 50);
}

TEST_F(PlanCommand, ShowsOnlyTheCutThatTheJobNames) {
  const json told = json::parse(plan("{cut: pool1}", {"--workers", "2", "-o", "json"}));
  ASSERT_EQ(told["cuts"].size(), 2u);
  EXPECT_EQ(told["cuts"][1]["cut"], "pool1");
}

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
  EXPECT_THROW(run({"--simulate", cluster.string()}), CLI::RequiredError)
      << "neither job nor profile";
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
      "server: {cores: 1}\nworkers: [{name: small, count: 4, cores: 8, gigabytes: 0.00001}]\n");
  EXPECT_THAT(cramped["plan"].get<std::string>(), HasSubstr("cut Input"));
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

}  // namespace
}  // namespace outrigger::cli
