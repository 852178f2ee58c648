#include "gpu-server/report/reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "common/file.h"
#include "nn/graph_builder.h"
#include "tests/fakes/fake_clock.h"

namespace outrigger::gpu_server {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ReporterTest : public testing::Test {
 protected:
  static training::StepReport report(uint64_t step) {
    training::StepReport told;
    told.step = step;
    told.plan.number = 1;
    told.took = std::chrono::milliseconds(1000);
    told.waited_for_input = std::chrono::milliseconds(400);
    told.optimizer = std::chrono::milliseconds(50);
    return told;
  }
  static feed::StallTimes waits() {
    feed::StallTimes times{};
    feed::of(times, feed::StallCause::kDecode) = 0.3;
    feed::of(times, feed::StallCause::kLink) = 0.1;
    return times;
  }
  std::vector<json> lines(const std::string& type) const {
    std::vector<json> found;
    std::istringstream text(read_file(folder_.path() / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const json one = json::parse(line);
      if (one["type"] == type) found.push_back(one);
    }
    return found;
  }

  TemporaryDirectory folder_{"outrigger-reporter"};
  fakes::FakeClock clock_;
  telemetry::Metrics metrics_;
  static constexpr RunSize kSize{.samples = 64, .total_steps = 10, .batch = 16, .micro_batches = 4};
  Reporter reporter_{"faces", folder_.path(), {}, kSize, 0, 1, metrics_, clock_};
};

TEST_F(ReporterTest, TellsWhatTheDeviceWaitedFor) {
  reporter_.step(report(0), {}, waits());
  reporter_.step(report(1), {}, waits());
  const json split = json::parse(reporter_.status_json())["split"];
  EXPECT_EQ(split["stallCause"], "Decode");
  EXPECT_NEAR(split["stallPercent"].get<double>(), 40, 0.1);
  EXPECT_NEAR(split["stallSeconds"]["Decode"].get<double>(), 0.6, 1e-9);
  EXPECT_NEAR(split["stallSeconds"]["Optimizer"].get<double>(), 0.1, 1e-9);
  EXPECT_NEAR(lines("step").back()["stall"]["Link"].get<double>(), 0.1, 1e-9);
  EXPECT_THAT(metrics_.exposition(),
              HasSubstr("outrigger_server_stall_seconds_total{cause=\"decode\"} 0.6"));
}

TEST_F(ReporterTest, TellsOtherRanksFromTheEndOfAStep) {
  training::StepReport waited = report(0);
  waited.waited_for_ranks = waited.optimizer / 4;
  reporter_.step(waited, {}, waits());
  const json seconds = json::parse(reporter_.status_json())["split"]["stallSeconds"];
  EXPECT_NEAR(seconds["Ranks"].get<double>(), to_seconds(waited.optimizer) / 4, 1e-9);
  EXPECT_NEAR(seconds["Optimizer"].get<double>(), to_seconds(waited.optimizer) * 3 / 4, 1e-9);
  EXPECT_THAT(metrics_.exposition(),
              HasSubstr("outrigger_server_stall_seconds_total{cause=\"ranks\"}"));
}

// Dashboards add what ranks tell; people are told of the whole job.
TEST_F(ReporterTest, CountsOnlyTheRanksOwnPartOfABatch) {
  Reporter second("faces", folder_.path(), {.rank = 1, .ranks = 4}, kSize, 0, 1, metrics_, clock_);
  second.step(report(0), {}, waits());
  const std::string told = metrics_.exposition();
  EXPECT_THAT(told, HasSubstr("outrigger_server_samples_total 4\n"));
  EXPECT_THAT(told, HasSubstr("outrigger_server_samples_per_second 4\n"));
  EXPECT_NEAR(json::parse(second.status_json())["progress"]["samplesPerSecond"].get<double>(), 16,
              1e-9);
}

TEST_F(ReporterTest, OfAResumedRunTellsWhereItIsBeforeItsFirstStep) {
  const TemporaryDirectory folder;
  telemetry::Metrics metrics;
  const Reporter resumed("faces", folder.path(), {}, kSize, 8, 2, metrics, clock_);
  const json progress = json::parse(resumed.progress_json());
  EXPECT_EQ(progress["step"], 8);
  EXPECT_EQ(progress["percent"], 80);
  EXPECT_EQ(progress["epoch"], 2);
  const Reporter done("faces", folder.path(), {}, kSize, 10, 2, metrics, clock_);
  EXPECT_EQ(json::parse(done.status_json())["progress"]["percent"], 100);
}

TEST_F(ReporterTest, LeavesOutWhatAnEvaluationMadeNoNumberOf) {
  reporter_.evaluation(5, {.accuracy = 0.5, .loss = 2, .verification = 0.7, .samples = 4}, {},
                       "server");
  EXPECT_THAT(metrics_.exposition(), HasSubstr("outrigger_server_evaluation_loss 2"));
  EXPECT_EQ(lines("evaluation").back()["notFinite"], 0);
  testing::internal::CaptureStderr();
  reporter_.evaluation(10, {.accuracy = 0.25, .samples = 4, .not_finite = 1}, {}, "server");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no numbers of 1 of 4"));
  const json told = lines("evaluation").back();
  EXPECT_FALSE(told.contains("loss"));
  EXPECT_FALSE(told.contains("verification"));
  EXPECT_EQ(told["notFinite"], 1);
  EXPECT_THAT(metrics_.exposition(), Not(HasSubstr("outrigger_server_evaluation_loss")));
  EXPECT_THAT(metrics_.exposition(), Not(HasSubstr("{metric=\"verification\"}")));
  EXPECT_THAT(metrics_.exposition(), HasSubstr("{metric=\"accuracy\"} 0.25"));
  EXPECT_FALSE(json::parse(reporter_.progress_json())["evaluation"].contains("loss"));
}

TEST_F(ReporterTest, OfPeopleWhoWereNotTrainedOnTellsNoAccuracyRatherThanNone) {
  testing::internal::CaptureStderr();
  reporter_.evaluation(5, {.verification = 0.75, .samples = 4}, {}, "server");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("held-out verification 75.00 % (4 images"));
  EXPECT_FALSE(lines("evaluation").back().contains("accuracy"));
  EXPECT_EQ(lines("evaluation").back()["verification"], 0.75);
  EXPECT_THAT(metrics_.exposition(), Not(HasSubstr("{metric=\"accuracy\"}")));
  EXPECT_THAT(metrics_.exposition(), HasSubstr("{metric=\"verification\"} 0.75"));
  const json told{{"verification", 0.75}};
  EXPECT_EQ(json::parse(reporter_.status_json())["evaluation"], told);
  EXPECT_EQ(json::parse(reporter_.progress_json())["evaluation"], told);
}

TEST_F(ReporterTest, TheTimeLeftHasTheEvaluationsForWhichTrainingStandsStill) {
  RunSize size = kSize;
  size.steps_between_evaluations = 2;
  const TemporaryDirectory folder;
  telemetry::Metrics metrics;
  Reporter reporter("faces", folder.path(), {}, size, 0, 1, metrics, clock_);
  const auto left = [&] {
    return json::parse(reporter.status_json())["progress"]["remainingSeconds"].get<double>();
  };
  reporter.step(report(0), {}, waits());
  reporter.step(report(1), {}, waits());
  EXPECT_NEAR(left(), 8, 1e-6);
  clock_.advance(std::chrono::seconds(5));
  reporter.evaluation(2, {.accuracy = 0.5, .samples = 4}, std::chrono::seconds(5), "server");
  EXPECT_NEAR(left(), 8 + 4 * 5, 1e-6);
  reporter.step(report(2), {}, waits());
  clock_.advance(std::chrono::seconds(1));
  reporter.evaluation(2, {.accuracy = 0.5, .samples = 4}, std::chrono::seconds(60), "workers");
  EXPECT_NEAR(left(), 7 + 4 * 1, 1e-6) << "beside training it holds nothing up";
}

TEST_F(ReporterTest, TellsHowMuchOfTheNetworkTheServerDoes) {
  feed::Plan plan{.number = 1, .cut = 3, .cut_name = "relu1", .stems_away = 3};
  plan.stem_percent = 40;
  reporter_.plan(plan, 5, "why");
  EXPECT_NEAR(lines("plan").back()["serverPercent"].get<double>(), 70, 1e-9);
  const json status = json::parse(reporter_.status_json());
  EXPECT_NEAR(status["split"]["serverPercent"].get<double>(), 70, 1e-9);
  EXPECT_THAT(metrics_.exposition(), HasSubstr("outrigger_server_work_ratio 0.7"));
}

TEST_F(ReporterTest, TellsHowManyWorkersTheJobCanUse) {
  const char* const metric = "outrigger_server_desired_workers";
  reporter_.workers(3, {}, {});
  EXPECT_FALSE(lines("workers").back().contains("desired"));
  EXPECT_THAT(metrics_.exposition(), Not(HasSubstr(metric))) << "nobody knows";
  reporter_.desired_workers(4);
  reporter_.workers(6, {}, {});
  EXPECT_EQ(lines("workers").back()["desired"], 4);
  EXPECT_THAT(metrics_.exposition(), HasSubstr(std::string(metric) + " 4\n"));
  reporter_.desired_workers(std::nullopt);
  EXPECT_THAT(metrics_.exposition(), Not(HasSubstr(metric)));
}

TEST_F(ReporterTest, TellsWhatComparingPlansTook) {
  reporter_.step(report(0), {}, waits(), std::chrono::milliseconds(250));
  EXPECT_NEAR(lines("step").back()["planningSeconds"].get<double>(), 0.25, 1e-9);
  EXPECT_THAT(metrics_.exposition(), HasSubstr("outrigger_server_planning_seconds_total 0.25"));
}

TEST_F(ReporterTest, CountsWhatLinksCarryAndWhatWasGivenOutTwice) {
  reporter_.step(report(0), {.second_leases = 1, .bytes_in = 1000, .bytes_out = 10}, waits());
  reporter_.step(report(1), {.second_leases = 3, .bytes_in = 1500, .bytes_out = 20}, waits());
  const std::string told = metrics_.exposition();
  EXPECT_THAT(told, HasSubstr("outrigger_server_link_bytes_total{direction=\"in\"} 1500"));
  EXPECT_THAT(told, HasSubstr("outrigger_server_link_bytes_total{direction=\"out\"} 20"));
  EXPECT_THAT(told, HasSubstr("outrigger_server_second_leases_total 3"));
}

TEST_F(ReporterTest, TellsWhatEachLayerAndEachWorkersStemsTake) {
  training::JobCosts costs;
  costs.layers = {{.name = "conv1", .forward = 0.1, .backward = 0.2, .kept = 8, .weights = 4}};
  reporter_.profile(costs);
  const json layer = lines("profile").back()["layers"][0];
  EXPECT_EQ(layer["name"], "conv1");
  EXPECT_NEAR(layer["backwardSeconds"].get<double>(), 0.2, 1e-9);
  const std::vector<LayerSeconds> here{{0.5f, 0.25f}};
  WorkerMeasures worker{.name = "w"};
  nn::GraphBuilder builder("small", {4, 4, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  const nn::Graph graph = builder.build();
  reporter_.layers(6, graph, here, std::vector{worker});
  worker.layers = {{1, 2}};
  EXPECT_TRUE(lines("layers").back()["workers"].empty()) << "it has run no stem";
  reporter_.layers(7, graph, here, std::vector{worker});
  EXPECT_EQ(lines("layers").back()["names"][2], "fc");
  EXPECT_EQ(lines("layers").back()["server"], json::parse("[[0.5, 0.25]]"));
  EXPECT_EQ(lines("layers").back()["workers"][0]["layers"], json::parse("[[1.0, 2.0]]"));
  worker.read = 0.01;
  worker.stems[3] = {.forward = 0.5, .backward = 0.25};
  reporter_.workers(7, std::vector{worker}, {});
  const json told = lines("workers").back()["workers"][0];
  EXPECT_NEAR(told["readSeconds"].get<double>(), 0.01, 1e-9);
  EXPECT_EQ(told["stems"][0]["layers"], 3);
  EXPECT_NEAR(told["stems"][0]["forwardSeconds"].get<double>(), 0.5, 1e-9);
}

TEST_F(ReporterTest, ShowsThePlanInForceAsAnInfoMetric) {
  feed::Plan plan{.number = 1};
  reporter_.plan(plan, 0, "to measure");
  plan = {.number = 2, .cut = 3, .cut_name = "pool1", .stems_away = 2};
  reporter_.plan(plan, 5, "shorter");
  const std::string text = metrics_.exposition();
  EXPECT_THAT(
      text,
      HasSubstr(
          "cut=\"pool1\",gradients=\"float32\",local_input_percent=\"0\",share_percent=\"50\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("cut=\"Input\""))) << "it is no more";
  EXPECT_EQ(lines("plan").back()["reason"], "shorter");
}

TEST_F(ReporterTest, SaysHowMuchOfTheInputStaysWithTheServer) {
  reporter_.plan({.number = 2, .cut = 3, .cut_name = "pool1", .stems_away = 2, .local_inputs = 1},
                 0, "narrow links");
  EXPECT_EQ(lines("plan").back()["localInputPercent"], 50);
  EXPECT_EQ(json::parse(reporter_.status_json())["split"]["localInputPercent"], 50);
  EXPECT_THAT(metrics_.exposition(), HasSubstr("local_input_percent=\"50\""));
}

TEST_F(ReporterTest, TellsOfWorkersAndHowManyAreWanted) {
  WorkerMeasures worker;
  worker.name = "node-1/0";
  worker.micro_batches = 12;
  reporter_.workers(3, std::vector{worker}, {});
  EXPECT_EQ(lines("workers").back()["workers"][0]["microBatches"], 12);
  EXPECT_FALSE(json::parse(reporter_.status_json())["workers"].contains("desired"));
  reporter_.desired_workers(7);
  EXPECT_EQ(json::parse(reporter_.status_json())["workers"]["desired"], 7);
}

TEST_F(ReporterTest, SaysHowARunEndedAndWhy) {
  reporter_.step(report(4), {}, waits());
  reporter_.end(api::ExitCode::kNumericalError, "the loss is not a number at step 5");
  EXPECT_EQ(lines("end"), std::vector{json::parse(R"({"type": "end", "state": "NumericalError",
      "message": "the loss is not a number at step 5", "step": 5, "totalSteps": 10})")});
  reporter_.end(api::ExitCode::kDone);
  EXPECT_EQ(lines("end").back()["state"], "Done");
  EXPECT_FALSE(lines("end").back().contains("message"));
}

TEST_F(ReporterTest, ShowsNoProgressOfARunThatIsPastItsEnd) {
  const auto said_of = [&](uint64_t step) {
    const TemporaryDirectory folder;
    telemetry::Metrics metrics;
    testing::internal::CaptureStderr();
    Reporter resumed("faces", folder.path(), {}, kSize, step, 2, metrics, clock_);
    resumed.finish();
    resumed.finish();
    EXPECT_EQ(json::parse(resumed.progress_json())["percent"], 100);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said_of(12), "");
  EXPECT_EQ(said_of(10), "epoch 3/3 | step 10/10\n") << "once";
}

TEST_F(ReporterTest, TellsOfPathsAndNamesThatAreNotUtf8) {
  const std::string odd = "caf\xe9.jpg";
  const std::string shown = "caf\uFFFD.jpg";
  reporter_.replacement({.slot = 3, .path = odd, .reason = odd + " is no image"});
  EXPECT_THAT(read_file(folder_.path() / "audit.jsonl"), HasSubstr(shown + " is no image"));
  const WorkerMeasures worker{.name = odd};
  reporter_.workers(1, std::span(&worker, 1), {});
  EXPECT_EQ(lines("workers").back()["workers"][0]["name"], shown);
  reporter_.step(report(1), {.worker_names = {odd}}, waits());
  EXPECT_EQ(json::parse(reporter_.status_json())["workers"]["names"][0], shown);
}

}  // namespace
}  // namespace outrigger::gpu_server
