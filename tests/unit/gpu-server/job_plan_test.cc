#include "gpu-server/job/job_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "api/parse.h"
#include "common/error.h"
#include "gpu-server/job/edits.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

using testing::HasSubstr;

constexpr const char* kJob = R"({
  "apiVersion": "outrigger.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "faces"},
  "spec": {
    "model": {"name": "resnet18"},
    "data": {"train": {"path": "faces"}, "image": {"height": 64, "width": 64}},
    "training": {"epochs": 3, "batchSize": 32, "microBatchSize": 4,
                 "schedule": {"constant": {"base": 0.1}}},
    "split": {"cut": "layer1", "sharePercent": 50},
    "output": {"path": "runs"}}})";

class JobPlan : public testing::Test {
 protected:
  std::string refused(const std::string& split) const {
    try {
      asked_plan(job_, graph_, size_, split);
      return "not refused";
    } catch (const InvalidInput& error) {
      return error.what();
    }
  }

  const api::TrainingJob job_ = api::resolve_training_job(kJob).job;
  const nn::Graph graph_ = worker::build_graph(job_, 10);
  const RunSize size_{.samples = 100, .total_steps = 10, .batch = 32, .micro_batches = 8};
};

TEST_F(JobPlan, HasTheCutAndTheShareOfTheJob) {
  const feed::Plan plan = make_plan(job_, graph_, size_, 3);
  EXPECT_EQ(plan.number, 3);
  EXPECT_EQ(plan.cut, graph_.cut("layer1").layers);
  EXPECT_EQ(plan.stems_away, 4);
  EXPECT_TRUE(plan.stem_trains);
  EXPECT_EQ(plan.stem_parameters,
            static_cast<uint64_t>(graph_.parameter_range({0, plan.cut}).size));
}

TEST_F(JobPlan, WhatAPlanDoesNotSayStaysAsItIs) {
  const feed::Plan plan = asked_plan(job_, graph_, size_, R"({"sharePercent": 25})");
  EXPECT_EQ(plan.cut_name, graph_.cut("layer1").name);
  EXPECT_EQ(plan.stems_away, 2);
}

TEST_F(JobPlan, AnAskedPlanMayKeepInputLocal) {
  const auto local = [&](const std::string& split) {
    return asked_plan(job_, graph_, size_, split).local_inputs;
  };
  EXPECT_EQ(local(R"({"cut": "Input", "localInputPercent": 75})"), 6u);
  EXPECT_EQ(local(R"({"sharePercent": 50, "localInputPercent": 50})"), 2u) << "of what stays";
  EXPECT_EQ(local(R"({"cut": "Input"})"), 0u);
  EXPECT_THAT(refused(R"({"localInputPercent": 101})"), HasSubstr("localInputPercent: 101"));
  EXPECT_THAT(refused(R"({"localInputPercent": "half"})"), HasSubstr("a number from 0 to 100"));
}

TEST_F(JobPlan, AnAskedPlanIsNotHeldToTheBoundOfThoseThatAreFound) {
  api::TrainingJob job = job_;
  job.spec.split = {.max_bytes_per_second = 1'000'000};
  const auto away = [&](const std::string& split) {
    return asked_plan(job, graph_, size_, split).stems_away;
  };
  EXPECT_EQ(away(R"({"cut": "Input", "localInputPercent": 75})"), 0u);
  EXPECT_EQ(away(R"({"cut": "layer1", "sharePercent": 50})"), 4u);
  EXPECT_THROW(away(R"({"cut": "layer1", "sharePercent": 50, "maxBytesPerSecond": 1000})"),
               InvalidInput)
      << "who asks for both contradicts himself";
}

TEST_F(JobPlan, AnEditOpensNoDeeperCutThanWorkersWereToldOf) {
  const auto edited = [&](int least) {
    nlohmann::json told = nlohmann::json::parse(kJob);
    told["spec"]["split"] = {{"cut", "Auto"}, {"minServerPercent", least}};
    return edited_job(job_, told.dump(), graph_, size_);
  };
  const int32_t deepest = deepest_cut(job_, graph_);
  const api::TrainingJob low = edited(10);
  EXPECT_EQ(deepest_cut(low, graph_), deepest);
  EXPECT_THROW(asked_plan(low, graph_, size_, R"({"cut": "layer4", "sharePercent": 50})"),
               InvalidInput);
  EXPECT_EQ(edited(70).spec.split.min_server_percent, 70) << "less may go, as ever";
}

TEST_F(JobPlan, ANullTakesAFieldAwaySoThatItsAbsenceIsJudged) {
  EXPECT_THAT(refused(R"({"sharePercent": null})"), HasSubstr("spec.split.sharePercent"));
}

TEST_F(JobPlan, RefusesWhatATrainingJobMayNotSay) {
  EXPECT_THAT(refused("cut: layer2"), HasSubstr("JSON object"));
  EXPECT_THAT(refused(R"({"share": 3})"), HasSubstr("spec.split.share"));
  EXPECT_THAT(refused(R"({"sharePercent": 101})"), HasSubstr("spec.split.sharePercent"));
  EXPECT_THAT(refused(R"({"cut": "layer9"})"), HasSubstr("layer9"));
  EXPECT_THAT(refused(R"({"cut": "Auto"})"), HasSubstr("Auto is no plan"));
  EXPECT_THAT(refused(R"({"cut": "layer4"})"), HasSubstr("the deepest cut"));
  EXPECT_THAT(refused(R"({"sharePercent": 100, "minServerPercent": 90})"),
              HasSubstr("minServerPercent is 90; with sharePercent: "));
}

TEST_F(JobPlan, ACutOfWhichNoShareLeavesTheServerItsPartIsRefused) {
  api::TrainingJob job = job_;
  job.spec.split = {.cut = "layer1", .min_server_percent = 100};
  std::string told = "not refused, though one stem away is too much";
  try {
    make_plan(job, graph_, size_, 1);
  } catch (const InvalidInput& error) {
    told = error.what();
  }
  EXPECT_THAT(told, HasSubstr("with one stem of a step away the cut behind 'layer1.1.relu2'"));
  EXPECT_THAT(told, HasSubstr("minServerPercent is 100; no share of it fits; with "));
  // What it names does.
  std::smatch bound;
  ASSERT_TRUE(std::regex_search(
      told, bound, std::regex("minServerPercent: ([0-9]+) it does, or with cut: Input$")))
      << told;
  job.spec.split.min_server_percent = std::stoi(bound[1]);
  EXPECT_NO_THROW(make_plan(job, graph_, size_, 1));
  job.spec.split = {.cut = "Input", .min_server_percent = 100};
  EXPECT_NO_THROW(make_plan(job, graph_, size_, 1));
  job.spec.split = {.cut = "layer1", .min_server_percent = 50};
  EXPECT_EQ(make_plan(job, graph_, size_, 1).stems_away, 0u) << "the planner's to find";
}

TEST_F(JobPlan, RefusesBoundsThatNoCutKeepsTo) {
  const auto refusal = [&](const api::SplitSpec& split) -> std::string {
    api::TrainingJob job = job_;
    job.spec.split = split;
    try {
      make_plan(job, graph_, size_, 1);
      return "not refused";
    } catch (const InvalidInput& error) {
      return error.what();
    }
  };
  const api::SplitSpec all{.share_percent = 100, .min_server_percent = 99};
  const std::string told = refusal(all);
  EXPECT_THAT(told,
              HasSubstr("spec.split: with sharePercent: 100 no cut leaves the server enough"));
  // What it names does.
  std::smatch bounds;
  ASSERT_TRUE(std::regex_search(
      told, bounds,
      std::regex("minServerPercent: ([0-9]+) it fits, or with sharePercent: ([0-9]+)")))
      << told;
  api::SplitSpec other = all;
  other.min_server_percent = std::stoi(bounds[1]);
  EXPECT_EQ(refusal(other), "not refused");
  other = all;
  other.share_percent = std::stoi(bounds[2]);
  EXPECT_EQ(refusal(other), "not refused");

  EXPECT_THAT(refusal({.min_server_percent = 100}),
              HasSubstr("with one stem of a step away no cut"));
  EXPECT_EQ(refusal({.cut = "Input", .min_server_percent = 100}), "not refused");
  EXPECT_EQ(refusal({.min_server_percent = 50}), "not refused");
}

TEST_F(JobPlan, SaysWhereAShareMovesNothing) {
  const auto advice = [&](const api::SplitSpec& split) {
    api::TrainingJob job = job_;
    job.spec.split = split;
    return share_advice(job, size_).value_or("");
  };
  EXPECT_THAT(advice({.cut = "layer1", .share_percent = 6}), HasSubstr("7 is the least"));
  EXPECT_THAT(advice({.share_percent = 6}), HasSubstr("sharePercent: 6 of 8 micro-batches"));
  EXPECT_EQ(advice({.cut = "layer1", .share_percent = 7}), "");
  EXPECT_EQ(advice({.cut = "layer1", .share_percent = 0}), "") << "as somebody wants it";
  EXPECT_THAT(advice({.cut = "Input", .share_percent = 50}),
              HasSubstr("sharePercent: 50 has no effect at cut: Input"));
  EXPECT_EQ(advice({.cut = "Input", .share_percent = 0}), "");
  EXPECT_EQ(advice({}), "");
}

TEST_F(JobPlan, AnEditGoesOnFromThePlanInForceByWhicheverNameOfItsCut) {
  const feed::Plan in_force = make_plan(job_, graph_, size_, 1);
  ASSERT_EQ(in_force.cut_name, "layer1.1.relu2");
  const auto goes_on = [&](const api::SplitSpec& split) {
    api::TrainingJob job = job_;
    job.spec.split = split;
    return goes_on_from(in_force, job, graph_);
  };
  EXPECT_TRUE(goes_on({.cut = "layer1"}));
  EXPECT_TRUE(goes_on({.cut = "layer1.1.relu2"}));
  EXPECT_TRUE(goes_on({.cut = "Auto"}));
  EXPECT_FALSE(goes_on({.cut = "layer2"}));
  EXPECT_FALSE(goes_on({.cut = "layer1", .share_percent = 50})) << "nothing is left to find";
}

TEST_F(JobPlan, KnowsAboutHowOftenTheRunIsEvaluatedAndSaved) {
  data::Dataset train;
  train.begin_container("ann", false);
  for (int i = 0; i < 100; ++i) train.add_file("photo.jpg", 0);
  api::TrainingJob job = job_;
  job.spec.checkpoint.every_steps = 30;
  EXPECT_EQ(run_size(job, train).steps_between_evaluations, 0);
  EXPECT_EQ(run_size(job, train).steps_between_checkpoints, 30);
  job.spec.data.validation.emplace();
  job.spec.training.evaluate.emplace();
  EXPECT_EQ(run_size(job, train).steps_between_evaluations, 100.0 / 32) << "after every epoch";
  job.spec.training.evaluate->every_steps = 20;
  EXPECT_EQ(run_size(job, train).steps_between_evaluations, 20);
  job.spec.server.replicas = 2;
  job.spec.training.sync_every_steps = 25;
  EXPECT_EQ(run_size(job, train).steps_between_evaluations, 25) << "when ranks meet";
  EXPECT_EQ(run_size(job, train).steps_between_checkpoints, 30);
}

TEST_F(JobPlan, ABoundOnBytesStartsWithNothingThatMoves) {
  api::TrainingJob job = job_;
  job.spec.split = {.max_bytes_per_second = 1'000'000};
  EXPECT_EQ(make_plan(job, graph_, size_, 1).local_inputs, size_.micro_batches);
}

TEST_F(JobPlan, MovesNoDeeperThanHalfOfTheNetworkOrTheJobsOwnCut) {
  const auto before = [&](int32_t cut) { return graph_.multiply_adds({0, cut}); };
  const auto all = graph_.multiply_adds(graph_.whole());
  const int32_t deepest = deepest_cut(job_, graph_);
  EXPECT_LE(2 * before(deepest), all);
  EXPECT_GE(deepest, graph_.cut("layer1").layers);
  api::TrainingJob deeper = job_;
  deeper.spec.split.cut = "layer4";
  EXPECT_EQ(deepest_cut(deeper, graph_), graph_.cut("layer4").layers);
  api::TrainingJob lighter = job_;
  lighter.spec.split.min_server_percent = 20;
  EXPECT_GT(deepest_cut(lighter, graph_), deepest);
  EXPECT_LE(100 * before(deepest_cut(lighter, graph_)), 80 * all);
  lighter.spec.split.min_server_percent = 80;
  EXPECT_EQ(deepest_cut(lighter, graph_), deepest) << "with a part of the stems away";
}

TEST_F(JobPlan, LeavesALayerBeforeAClassifierThatRanksShareOut) {
  api::TrainingJob job = job_;
  job.spec.model = {.name = "iresnet18", .embedding = 32};
  job.spec.training.loss = api::ArcFace{.partial_fc = api::PartialFc{}};
  const nn::Graph faces = worker::build_graph(job, 10);
  const nn::Cut& last = faces.cuts().back();
  ASSERT_EQ(last.layers, faces.size() - 1) << "before the classifier";
  job.spec.split = {.cut = last.name, .share_percent = 50};
  try {
    make_plan(job, faces, size_, 1);
    ADD_FAILURE() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("spec.split.cut: '" + last.name + "'"));
    EXPECT_THAT(error.what(), HasSubstr("partialFC"));
  }
  const nn::Cut& before = *std::prev(faces.cuts().end(), 2);
  job.spec.split.cut = before.name;
  EXPECT_EQ(make_plan(job, faces, size_, 1).cut, before.layers);
}

}  // namespace
}  // namespace outrigger::gpu_server
