#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/parse.h"
#include "common/file.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kValidJob = R"(apiVersion: outrigger.dev/v1alpha1
kind: TrainingJob
metadata: {name: faces}
spec:
  model: {name: lenet5}
  data: {train: {path: faces}, image: {height: 28, width: 28}}
  training: {epochs: 3, batchSize: 64, schedule: {constant: {base: 0.1}}}
  split: {cut: Input}
  output: {path: /runs}
)";

class Validate : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::string path = (directory_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  std::string bad_text() {
    std::string text = kValidJob;
    text.replace(text.find("batchSize: 64"), 13, "batchSize: -1");
    return text;
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Validate, SaysThatAJobIsValid) {
  const std::string path = file("job.yaml", kValidJob);
  const Outcome outcome = run_command({"validate", path});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, path + ": valid\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Validate, ReportsEveryFileAndEndsAsInvalidSpec) {
  const std::string good = file("good.yaml", kValidJob);
  const std::string bad = file("bad.yaml", bad_text());
  const Outcome outcome = run_command({"validate", bad, good});
  EXPECT_EQ(outcome.status, 10);
  EXPECT_EQ(outcome.out, good + ": valid\n");
  EXPECT_EQ(outcome.err, bad + ":7:36: spec.training.batchSize: -1 is too small; at least 1\n");
}

TEST_F(Validate, JudgesTheOthersWhereAFileCannotBeRead) {
  const std::string good = file("good.yaml", kValidJob);
  const std::string endless = "/dev/zero";
  const Outcome outcome = run_command({"validate", good, good + ".not", endless});
  EXPECT_EQ(outcome.status, 22);
  EXPECT_EQ(outcome.out, good + ": valid\n");
  EXPECT_THAT(outcome.err, HasSubstr("good.yaml.not: No such file"));
  EXPECT_THAT(outcome.err, HasSubstr("/dev/zero is larger than the limit"));
  const Outcome told = run_command({"validate", "-o", "json", good + ".not", good});
  const auto verdicts = nlohmann::json::parse(told.out);
  EXPECT_EQ(verdicts.at(0).at("valid"), false);
  EXPECT_THAT(verdicts.at(0).at("unreadable").get<std::string>(), HasSubstr("No such file"));
  EXPECT_EQ(verdicts.at(1).at("valid"), true);
}

TEST_F(Validate, WarnsOfWhatIsNotBuiltYet) {
  std::string text = kValidJob;
  text.insert(text.find("  split:"), "  network: {encryption: TLS}\n");
  const Outcome outcome = run_command({"validate", file("job.yaml", text)});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(
      outcome.err,
      HasSubstr("`outrigger run` refuses it here: spec.network.encryption: TLS is not built yet"));
}

TEST_F(Validate, RefusesANetworkOrACutThatIsNotThere) {
  const auto said = [&](const char* part, const char* other, int status = 0) {
    std::string text = kValidJob;
    text.replace(text.find(part), std::string(part).size(), other);
    const Outcome outcome = run_command({"validate", file("job.yaml", text)});
    EXPECT_EQ(outcome.status, status) << part;
    return outcome.err;
  };
  EXPECT_THAT(said("lenet5", "lenet6", 10),
              HasSubstr("job.yaml:5:3: spec.model: there is no model \"lenet6\""));
  EXPECT_THAT(said("cut: Input", "cut: pool9", 10),
              HasSubstr("spec.split.cut: cannot cut lenet5 at \"pool9\""));
  EXPECT_EQ(said("cut: Input", "cut: pool1"), "");
  EXPECT_EQ(said("{name: lenet5}",
                 "{layers: [{name: c, convolution: {channels: 4, kernel: 3}}, {name: p, "
                 "globalAveragePool: {}}, {name: f, flatten: {}}]}"),
            "")
      << "only the data tells whether there are four classes";
}

TEST_F(Validate, RefusesASplitThatLeavesTheServerTooLittle) {
  const auto said = [&](const std::string& model, const std::string& split, int status = 0) {
    std::string text = kValidJob;
    text.replace(text.find("{name: lenet5}"), 14, model);
    text.replace(text.find("{cut: Input}"), 12, split);
    const Outcome outcome = run_command({"validate", file("job.yaml", text)});
    EXPECT_EQ(outcome.status, status) << split;
    return outcome.err;
  };
  const std::string layers =
      "{layers: [{name: c, convolution: {channels: 4, kernel: 3}}, {name: r, relu: {}}, {name: d, "
      "convolution: {channels: 64, kernel: 3}}, {name: p, globalAveragePool: {}}, {name: f, "
      "flatten: {}}, {name: l, linear: {features: 5}}]}";
  EXPECT_THAT(said(layers, "{cut: r, sharePercent: 50, minServerPercent: 99}", 10),
              HasSubstr(": spec.split: with sharePercent: 50 the cut "));
  EXPECT_THAT(
      said(layers, "{minServerPercent: 100}", 10),
      HasSubstr("spec.split: with one stem of a step away no cut leaves the server enough"));
  EXPECT_EQ(said(layers, "{cut: r, sharePercent: 50, minServerPercent: 10}"), "");

  EXPECT_THAT(said("{name: resnet18}", "{minServerPercent: 100}", 10),
              HasSubstr("with 2 classes; with more the server's part is larger, but not even"));
  EXPECT_EQ(said("{name: lenet5}", "{cut: pool1, sharePercent: 100, minServerPercent: 80}"), "")
      << "with enough classes it leaves the server that";
}

TEST_F(Validate, TellsWhatAClusterAloneRefuses) {
  std::string text = kValidJob;
  text.replace(text.find("/runs"), 5, "runs");
  text.insert(text.find("  split:"),
              "  network: {port: 8080}\n  schedulingPolicy: {gang: Volcano}\n");
  const std::string path = file("job.yaml", text);
  const Outcome outcome = run_command({"validate", path});
  EXPECT_EQ(outcome.status, 0) << "it is a job, and runs here";
  EXPECT_EQ(outcome.out, path + ": valid\n");
  EXPECT_THAT(
      outcome.err,
      HasSubstr(": a cluster refuses it: spec.schedulingPolicy.gang: Volcano is not built"));
  EXPECT_THAT(outcome.err, HasSubstr(": a cluster refuses it: spec.network.port: 8080: "));
  EXPECT_THAT(outcome.err, HasSubstr(": a cluster refuses it: spec.output.path: "));
  const Outcome told = run_command({"validate", "-o", "json", path});
  const auto verdict = nlohmann::json::parse(told.out).at(0);
  EXPECT_EQ(verdict.at("refusedByClusters").size(), 3U);
  EXPECT_EQ(verdict.at("refusedByClusters").at(0).at("path"), "spec.schedulingPolicy.gang");
  EXPECT_TRUE(verdict.at("notBuiltYet").empty());
}

TEST_F(Validate, PrintsTheResolvedJobAsAJobFile) {
  const Outcome outcome = run_command({"validate", "--resolved", file("job.yaml", kValidJob)});
  const auto again = api::resolve_training_job(outcome.out);
  EXPECT_TRUE(again.errors.empty());
  EXPECT_EQ(again.job.spec.training.micro_batch_size, 32);
}

TEST_F(Validate, SpeaksJsonToPrograms) {
  const std::string bad = file("bad.yaml", bad_text());
  const Outcome outcome = run_command({"validate", "-o", "json", bad});
  EXPECT_EQ(outcome.status, 10);
  const auto verdict = nlohmann::json::parse(outcome.out).at(0);
  EXPECT_EQ(verdict.at("file"), bad);
  EXPECT_EQ(verdict.at("valid"), false);
  EXPECT_EQ(verdict.at("errors").at(0).at("path"), "spec.training.batchSize");
  EXPECT_EQ(verdict.at("errors").at(0).at("line"), 7);
}

TEST_F(Validate, TheExamplesAreValidAndRunEverywhereUnlessTheyWantAGpuOrACluster) {
  std::vector<std::string> arguments{"validate"};
  for (const auto& entry :
       std::filesystem::directory_iterator(OUTRIGGER_SOURCE_DIR "/manifests/examples")) {
    const bool job = read_file(entry.path()).find("kind: TrainingJob") != std::string::npos;
    if (job) arguments.push_back(entry.path().string());
  }
  ASSERT_GT(arguments.size(), 1u);
  const Outcome outcome = run_command(arguments);
  EXPECT_EQ(outcome.status, 0);
  std::istringstream complaints(outcome.err);
  for (std::string line; std::getline(complaints, line);)
    EXPECT_THAT(
        line,
        testing::AnyOf(HasSubstr("spec.server.gpus: no GPU can be used here"),
                       HasSubstr("spec.server.engine: External: only a cluster runs"),
                       testing::ContainsRegex("-local.*a cluster refuses it: spec.output.path: ")));
}

TEST(Version, NamesTheReleaseTheApiAndTheMachine) {
  const auto told = nlohmann::json::parse(run_command({"version", "-o", "json"}).out);
  EXPECT_EQ(told.at("apiVersion"), "outrigger.dev/v1alpha1");
  EXPECT_FALSE(told.at("version").get<std::string>().empty());
  EXPECT_THAT(run_command({"version"}).out,
              HasSubstr("outrigger " + told.at("version").get<std::string>()));
}

}  // namespace
}  // namespace outrigger::cli
