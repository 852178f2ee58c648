#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/integration/training/training_run.h"

/// Evaluations that workers make beside training, against those of the server.
namespace outrigger::integration {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::SizeIs;

/// Six evaluations; the run is long enough for workers to join in time.
JobText evaluated_by(const std::string& place) {
  return {.cut = "relu2",
          .share = 50,
          .steps = 360,
          .checkpoint_every = 7,
          .keep = 1000,
          .more_training =
              "    averageWeights: 0.9\n"
              "    evaluate: {everySteps: 60, metric: Verification, place: " +
              place + "}\n",
          .validation = true};
}

/// What was measured, by step.
std::map<int64_t, std::vector<double>> measured(const TrainingRun& run) {
  std::map<int64_t, std::vector<double>> all;
  for (const json& one : run.events("evaluation")) {
    all[one.at("step")] = {one.at("accuracy"), one.at("loss"), one.at("verification"),
                           one.at("samples")};
  }
  return all;
}

std::map<std::string, int> makers(const TrainingRun& run) {
  std::map<std::string, int> all;
  for (const json& one : run.events("evaluation")) ++all[one.at("by")];
  return all;
}

json best_of(const TrainingRun& run) {
  const json state = json::parse(read_file(run.directory() / "best" / "state.json"));
  return {state.at("step"), state.at("bestStep"), state.at("bestMetric")};
}

const TrainingRun& by_server() {
  static const std::unique_ptr<TrainingRun> run = train(evaluated_by("Server"), 2);
  return *run;
}

// Micro-batches of four: workers score as many at once as the server does, so that every bit is
// the same.
TEST(EvaluationBesideTraining, MeasuresWhatTheServerDoesAndLeavesTheWeightsAsTheyAre) {
  const auto run = train(evaluated_by("Workers"), 2);
  EXPECT_GE(makers(*run)["workers"], 1);
  EXPECT_EQ(run->events("evaluation").back().at("by"), "server")
      << "nothing is beside the last step's";
  EXPECT_EQ(measured(*run), measured(by_server()));
  EXPECT_EQ(best_of(*run), best_of(by_server()));
  EXPECT_EQ(tensors(run->directory() / "best" / "averaged.safetensors"),
            tensors(by_server().directory() / "best" / "averaged.safetensors"));
  EXPECT_EQ(run->weights(), by_server().weights());
  EXPECT_EQ(run->audit(), by_server().audit());
}

TEST(EvaluationBesideTraining, GoesOnWithoutWorkersThatDieInIt) {
  TrainingRun run(evaluated_by("Workers"));
  run.start_server();
  run.start_worker({.fault = "got-score-lease:3:KILL"});
  run.start_worker({.fault = "sent-scores:2:KILL"});
  run.start_worker();
  ASSERT_EQ(run.wait_for_server(), 0) << run.server_log();
  EXPECT_EQ(measured(run), measured(by_server()));
  EXPECT_EQ(run.weights(), by_server().weights());
  EXPECT_FALSE(run.worker_runs(0));
  EXPECT_FALSE(run.worker_runs(1));
}

TEST(EvaluationBesideTraining, IsTheServersWhereNoWorkerIsLeft) {
  TrainingRun run(evaluated_by("Workers"));
  run.start_server();
  run.start_worker({.fault = "got-score-lease:3:KILL"});
  ASSERT_EQ(run.wait_for_server(), 0) << run.server_log();
  EXPECT_EQ(measured(run), measured(by_server()));
  EXPECT_EQ(run.weights(), by_server().weights());
}

/// Waits for a checkpoint of a run whose workers are in the middle of an evaluation.
fs::path checkpoint_in_an_evaluation(const TrainingRun& run) {
  for (int i = 0; i < 6000; ++i) {
    for (const int64_t step : run.checkpoints()) {
      const auto path = run.directory() / ("step-" + std::to_string(step));
      if (fs::exists(path / "evaluating" / "state.json") && fs::exists(path / "state.json"))
        return path;
    }
    ::usleep(10'000);
  }
  return {};
}

TEST(EvaluationBesideTraining, IsGoneOnWithAfterAResume) {
  TrainingRun run(evaluated_by("Workers"));
  run.start_server();
  run.start_worker({.fault = "got-score-lease:1:STOP"});
  ASSERT_FALSE(checkpoint_in_an_evaluation(run).empty()) << run.server_log();
  run.signal_server(SIGKILL);
  run.wait_for_server();
  run.signal_worker(0, SIGKILL);
  run.start_worker();
  run.start_server(true);
  ASSERT_EQ(run.wait_for_server(), 0) << run.server_log();
  EXPECT_EQ(measured(run), measured(by_server())) << "none is missing, and none is another";
  EXPECT_EQ(best_of(run), best_of(by_server()));
  EXPECT_EQ(run.weights(), by_server().weights());
}

TEST(EvaluationBesideTraining, IsGoneOnWithByTheFirstOfSeveralRanks) {
  JobText job = evaluated_by("Workers");
  job.replicas = 2;
  TrainingRun run(job);
  run.start_server();
  run.start_second_rank();
  run.start_worker({.fault = "got-score-lease:1:STOP"});
  ASSERT_FALSE(checkpoint_in_an_evaluation(run).empty()) << run.server_log();
  run.signal_server(SIGKILL);
  run.signal_second_rank(SIGKILL);
  run.wait_for_server();
  run.wait_for_second_rank();
  run.signal_worker(0, SIGKILL);
  run.start_server(true);
  run.start_second_rank(true);
  run.start_worker();
  ASSERT_EQ(run.wait_for_server(), 0) << run.server_log();
  EXPECT_EQ(run.wait_for_second_rank(), 0);
  EXPECT_THAT(measured(run), SizeIs(6));
}

TEST(EvaluationBesideTraining, AutoMeasuresTheServerFirstAndThenTheWorkers) {
  const auto run = train(evaluated_by("Auto"), 2);
  const auto evaluations = run->events("evaluation");
  ASSERT_THAT(evaluations, SizeIs(6));
  EXPECT_EQ(evaluations[0].at("by"), "server");
  EXPECT_GE(makers(*run)["workers"], 1);
  EXPECT_EQ(measured(*run), measured(by_server()));
  EXPECT_EQ(run->weights(), by_server().weights());
}

/// Faces whose validation set shows people who are none of the classes.
const fs::path& strangers() {
  static const TemporaryDirectory folder("outrigger-strangers");
  static const fs::path path = [] {
    fs::copy(faces() / "train", folder.path() / "train", fs::copy_options::recursive);
    fs::create_directory(folder.path() / "val");
    for (const auto& person : fs::directory_iterator(faces() / "val")) {
      const std::string name = "guest-" + person.path().filename().string();
      fs::copy(person.path(), folder.path() / "val" / name, fs::copy_options::recursive);
    }
    return folder.path();
  }();
  return path;
}

JobText of_strangers(const std::string& place) {
  JobText job = evaluated_by(place);
  job.data = strangers();
  return job;
}

/// The verification, by step, of a run that measured nothing of the classifier.
std::map<int64_t, double> verified(const TrainingRun& run) {
  std::map<int64_t, double> all;
  for (const json& one : run.events("evaluation")) {
    EXPECT_FALSE(one.contains("accuracy"));
    EXPECT_FALSE(one.contains("loss"));
    EXPECT_EQ(one.at("samples"), 36);
    all[one.at("step")] = one.at("verification");
  }
  return all;
}

TEST(EvaluationOfStrangers, IsOfTheirEmbeddingsWhoeverMakesIt) {
  const auto server = train(of_strangers("Server"), 2);
  const auto workers = train(of_strangers("Workers"), 2);
  EXPECT_THAT(verified(*server), SizeIs(6));
  EXPECT_GE(makers(*workers)["workers"], 1);
  EXPECT_EQ(verified(*workers), verified(*server));
  EXPECT_EQ(best_of(*workers), best_of(*server));
  EXPECT_EQ(workers->weights(), server->weights());
  EXPECT_EQ(server->weights(), by_server().weights()) << "it changes nothing of the training";
}

TEST(EvaluationOfStrangers, IsMadeByTheFirstOfSeveralRanks) {
  JobText job = of_strangers("Auto");
  job.replicas = 2;
  TrainingRun run(job);
  run.start_server();
  run.start_second_rank();
  run.start_worker();
  ASSERT_EQ(run.wait_for_server(), 0) << run.server_log();
  EXPECT_EQ(run.wait_for_second_rank(), 0);
  EXPECT_THAT(verified(run), SizeIs(6));
  EXPECT_NE(
      run.server_log().find("12 of 12 people in spec.data.validation are none of the classes"),
      std::string::npos);
}

}  // namespace
}  // namespace outrigger::integration
