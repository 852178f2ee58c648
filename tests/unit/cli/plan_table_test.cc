#include "cli/plan_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/plan_bounds.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Eight micro-batches of two images, and three cuts of which each leaves the server less.
PlannedJob planned_job() {
  PlannedJob job;
  job.profile.samples = 160;
  job.profile.batch = 16;
  job.profile.micro_batch = 2;
  training::JobCosts& costs = job.profile.costs;
  costs.micro_batches = 8;
  costs.pixels = 1e6;
  for (int i = 0; i < 4; ++i)
    costs.cuts.push_back({.cut = i,
                          .name = i == 0 ? "Input" : "relu" + std::to_string(i),
                          .trains = i > 0,
                          .stem_forward = 0.01 * i,
                          .stem_backward = 0.02 * i,
                          .head = 0.3 - 0.03 * i,
                          .activations = 1e6,
                          .gradients = 1e6,
                          .weights = 1e5,
                          .server_percent = 100.0 - 10 * i});
  job.server = {.cores = 2, .decode = 0.1};
  job.workers.assign(2, {.decode = 0.05, .bytes_per_second = 1e9, .latency = 0.0005});
  return job;
}

/// Why a cut has no row; empty: it has one, or nothing is said of it.
std::string why(const PlannedJob& job, const std::string& cut) {
  const training::Situation in{job.profile.costs, job.profile.options, job.server, job.workers};
  const auto rows = tried_candidates(in, training::by_model()).rows;
  const nlohmann::json list = left_out(in, rows);
  for (const auto& one : list) {
    if (one["cut"] == cut) return one["why"];
  }
  return "";
}

std::string printed(const PlannedJob& job, bool layers = false) {
  testing::internal::CaptureStdout();
  print_plan_table(plan_table(job), layers);
  return testing::internal::GetCapturedStdout();
}

TEST(PlanTable, SaysWhatIsChosenWhyAndWhatTheNextWouldGive) {
  const std::string text = printed(planned_job());
  EXPECT_THAT(text, testing::ContainsRegex("The choice is cut relu3, [0-9] of 8 stems away.*: its "
                                           "step is the shortest, bound by "));
  EXPECT_THAT(text, testing::ContainsRegex("; the next, cut relu2, .*, has 0\\.[0-9]+x its rate"));
  EXPECT_THAT(text, testing::ContainsRegex("Its MB on the server: .*activations [0-9]+"));
  EXPECT_THAT(text, HasSubstr("And on a worker: "));
}

TEST(PlanTable, SaysWhatNarrowerWiresWouldBring) {
  PlannedJob job = planned_job();
  EXPECT_THAT(printed(job), Not(HasSubstr("split.wire"))) << "links are no limit";
  for (training::WorkerRates& worker : job.workers) worker.bytes_per_second = 3e6;
  EXPECT_THAT(printed(job), HasSubstr("{activations: Int8, gradients: Int8}"));
  job.narrowed_work[WireFormat::kInt8] = {.byte = 1e-6};
  EXPECT_THAT(printed(job), Not(HasSubstr("Int8"))) << "three times a link's time of the cores";
  job.wires.activations = job.wires.gradients = WireFormat::kInt8;
  EXPECT_THAT(printed(job), Not(HasSubstr("split.wire"))) << "there is none narrower";
}

TEST(PlanTable, CountsWeightsForThoseWhoAreGivenStems) {
  PlannedJob job = planned_job();
  job.profile.options.cut = 1;
  job.profile.options.away = 1;
  job.workers[0].stems = false;
  const nlohmann::json told = plan_table(job);
  const training::CutCosts& cut = job.profile.costs.cuts[1];
  EXPECT_DOUBLE_EQ(told["cuts"][told["choice"].get<size_t>()]["bytesToWorkers"].get<double>(),
                   cut.gradients + cut.weights);
}

TEST(PlanTable, SaysWhatTheChoiceKeepsLocal) {
  PlannedJob job = planned_job();
  job.profile.options.away = 0;
  for (training::WorkerRates& worker : job.workers) worker.bytes_per_second = 1e6;
  EXPECT_THAT(printed(job), testing::ContainsRegex("The choice is cut Input, [0-9] of 8 inputs "
                                                   "made by the server itself: its step"));
}

TEST(PlanTable, SaysHowFewStemsAreAway) {
  PlannedJob job = planned_job();
  job.profile.batch = 256;
  job.profile.costs.micro_batches = 128;
  job.profile.options.cut = 3;
  job.profile.options.away = 1;
  EXPECT_THAT(printed(job), HasSubstr("cut relu3, 1 of 128 stems away"));
}

TEST(PlanTable, SaysOfWhichLayersTheSumIs) {
  PlannedJob job = planned_job();
  job.profile.costs.layers = {{.name = "conv1", .forward = 0.001, .backward = 0.002}};
  const std::string of_cores = printed(job, true);
  EXPECT_THAT(of_cores, HasSubstr("\n  all  "));
  EXPECT_THAT(of_cores, HasSubstr("Times are of one core.\n"));
  for (training::CutCosts& cut : job.profile.costs.cuts) cut.device_stem = 0.001;
  const std::string of_gpu = printed(job, true);
  EXPECT_THAT(of_gpu, HasSubstr("\n  all layers of stems  "));
  EXPECT_THAT(of_gpu, HasSubstr("layers behind the deepest cut run on the GPU alone"));
}

TEST(PlanTable, SaysWhichCutsLeaveTheServerTooLittle) {
  PlannedJob job = planned_job();
  EXPECT_EQ(why(job, "relu3"), "");
  job.profile.options.least_server_percent = 97;  // one stem of eight takes 3.75 off at the last
  EXPECT_EQ(why(job, "relu3"),
            "leaves 96 % on the server with 1 of 8 stems away, minServerPercent is 97");
  EXPECT_EQ(why(job, "relu2"), "");
  job.profile.options.away = 8;
  EXPECT_THAT(why(job, "relu1"), HasSubstr("leaves 90 % on the server with 8 of 8 stems away"));
  job.profile.options.cut = 1;
  EXPECT_EQ(why(job, "relu2"), "") << "the job names another";
}

TEST(PlanTable, SaysWhichCutsMoveTooMuch) {
  PlannedJob job = planned_job();
  job.profile.options.most_bytes_per_second = 1e5;
  EXPECT_THAT(why(job, "relu1"), HasSubstr("than maxBytesPerSecond, 100000, with every share"));
  job.workers.clear();
  EXPECT_EQ(why(job, "relu1"), "") << "nobody runs stems, whatever they move";
}

TEST(PlanTable, SaysWhatMemoryOrAShareOfNothingExcludes) {
  PlannedJob job = planned_job();
  job.workers.front().memory = 1e6;
  EXPECT_EQ(why(job, "relu1"), "") << "the other runs the stems";
  job.workers.back().memory = 1e6;
  EXPECT_THAT(why(job, "relu1"), HasSubstr("MB on a worker"));
  job = planned_job();
  job.profile.options.away = 0;
  EXPECT_EQ(why(job, "relu1"), "no stem of a step is away with the job's sharePercent");
}

TEST(PlanTable, SaysWhatAnOpenPlanWouldBeWhereTheJobNamesOne) {
  PlannedJob job = planned_job();
  training::Choice better{.local = 1};
  const auto advice = [&](double seconds_of_it) {
    const training::Situation in{job.profile.costs, job.profile.options, job.server, job.workers};
    const training::Trial trial{[=](const training::Situation&, const training::Choice& choice) {
      return choice == better ? seconds_of_it : 1;
    }};
    return open_plan_advice(in, 1, trial).value_or("");
  };
  EXPECT_EQ(advice(0.5), "") << "it is open";
  job.profile.options.cut = 0;
  EXPECT_THAT(advice(0.5), HasSubstr("cut Input, 1 of 8 inputs made by the server itself: 2.00x"));
  EXPECT_EQ(advice(0.99), "") << "for little";
  EXPECT_EQ(advice(2), "");
  better = {.cut = 3, .away = 8};
  EXPECT_THAT(advice(0.5), HasSubstr("cut relu3, 8 of 8 stems away: 2.00x")) << "keeps none local";
  job.profile.options.cut = 1;
  EXPECT_THAT(advice(0.5), HasSubstr("cut relu3")) << "its share is open";
  job.profile.options.cut.reset();
  job.profile.options.away = 4;
  EXPECT_THAT(advice(0.5), HasSubstr("8 of 8 stems away")) << "its cut is open";
  job.profile.costs.cuts[3].server_percent = 40;
  EXPECT_EQ(advice(0.5), "") << "so deep a cut is only for those who name it";
  job.profile.options.least_server_percent = 30;
  EXPECT_THAT(advice(0.5), HasSubstr("8 of 8 stems away")) << "or say that less will do";
}

TEST(PlanTable, SaysWhatABoundOnBytesCosts) {
  PlannedJob job = planned_job();
  const training::Trial trial{[](const training::Situation&, const training::Choice& choice) {
    return choice == training::Choice{} ? 0.5 : 1;
  }};
  const auto advice = [&] {
    const training::Situation in{job.profile.costs, job.profile.options, job.server, job.workers};
    return traffic_advice(in, 1, trial).value_or("");
  };
  EXPECT_EQ(advice(), "") << "there is none";
  job.profile.options.most_bytes_per_second = 1000;
  EXPECT_EQ(advice(),
            "maxBytesPerSecond holds the job back: without it the best plan would be cut Input, "
            "with 2.00x the images a second; it counts for about 16000000 bytes a second.");
}

/// Whose activations come over links too narrow for them.
PlannedJob job_with_a_bad_plan() {
  PlannedJob job = planned_job();
  for (training::WorkerRates& worker : job.workers) worker.bytes_per_second = 1e6;
  job.profile.costs.pixels = 1e4;
  job.profile.options.cut = 1;
  job.profile.options.away = 8;
  job.prices = Prices{};
  return job;
}

TEST(PlanTable, TellsOfThePlanThatTheJobFixesThoughAnotherIsBetter) {
  const PlannedJob job = job_with_a_bad_plan();
  const nlohmann::json told = plan_table(job);
  ASSERT_EQ(told["cuts"].size(), 2u);
  const nlohmann::json& own = told["cuts"][1];
  EXPECT_LT(own["imagesPerSecond"], told["cuts"][0]["imagesPerSecond"]);
  EXPECT_EQ(told["choice"], 1);
  EXPECT_EQ(told["byWorkers"].front()["cut"], "Input") << "nobody is there";
  EXPECT_EQ(told["byWorkers"].back()["cut"], "relu1");
  EXPECT_EQ(told["byWorkers"].back()["imagesPerSecond"], own["imagesPerSecond"]);
  const std::string text = printed(job);
  EXPECT_THAT(text, HasSubstr("The choice is cut relu1, 8 of 8 stems away: the job fixes it; its "
                              "step is bound by the links"));
  EXPECT_THAT(text, HasSubstr("Workers would not pay with the job's split: "));
  EXPECT_THAT(text, HasSubstr("With cut: Auto and no sharePercent the best plan would be "));
  EXPECT_THAT(text, HasSubstr(" by the job's plan.\n`run` keeps to the plan that the job fixes."));
}

TEST(PlanTable, TellsWhatIsLeftWhereNobodyCanRunThePlanThatTheJobFixes) {
  PlannedJob job = job_with_a_bad_plan();
  job.workers.clear();
  const std::string text = printed(job);
  EXPECT_THAT(text, HasSubstr("The choice is cut Input: its step is the shortest, bound by "));
  EXPECT_THAT(text, HasSubstr(" by the best plan."));
}

TEST(PlanTable, SaysWhatARunMoves) {
  PlannedJob job = planned_job();
  EXPECT_THAT(printed(job), HasSubstr("`run` goes on measuring and moves the cut."));
  job.profile.options.cut = 1;
  EXPECT_THAT(printed(job), HasSubstr("`run` goes on measuring and moves the share."));
}

TEST(PlanTable, SaysOfWhatMillisecondsAre) {
  PlannedJob job = planned_job();
  EXPECT_THAT(printed(job), HasSubstr("milliseconds are of one core"));
  for (training::CutCosts& cut : job.profile.costs.cuts) cut.device_stem = 0.001;
  const std::string of_gpu = printed(job);
  EXPECT_THAT(of_gpu, HasSubstr("stem ms are of one core, head ms of the GPU"));
  EXPECT_THAT(of_gpu, Not(HasSubstr("milliseconds are of one core")));
}

TEST(PlanTable, TellsTheLimitWithoutWorkersFromThatWithThem) {
  PlannedJob job = planned_job();
  nlohmann::json told = plan_table(job);
  const auto printed_gain = [&](const char* alone, const char* with) {
    told["boundAlone"] = alone;
    for (auto& row : told["cuts"]) {
      row["bound"] = with;
      row["timesUnsplit"] = 1.0;
    }
    testing::internal::CaptureStdout();
    print_plan_table(told, false);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(printed_gain("the device", "the device"),
              HasSubstr("Workers would not pay here: with and without them the limit is the "
                        "device.\n"));
  EXPECT_THAT(printed_gain("decoding", "the links"),
              HasSubstr("Workers would not pay here: the server alone is limited by decoding, with "
                        "workers by the links.\n"));
  told["ranks"] = 2;
  EXPECT_THAT(printed_gain("decoding", "the links"),
              HasSubstr("the servers alone are limited by decoding, with workers by the links"));
}

}  // namespace
}  // namespace outrigger::cli
