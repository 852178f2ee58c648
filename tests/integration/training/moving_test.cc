#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "api/exit_codes.h"
#include "api/parse.h"
#include "api/write.h"
#include "tests/integration/training/training_run.h"

/// Plans that move while real processes work, by hand and by the planner, with lossy wires and over
/// Gloo; and what ends a server that works no more.
namespace outrigger::integration {
namespace {

constexpr int kSteps = 30;

JobText job_with(const std::string& cut, int share) {
  return {.cut = cut, .share = share, .steps = kSteps};
}

/// What a run without moves and without workers gives.
const TrainingRun& unmoved() {
  static const std::unique_ptr<TrainingRun> run = train(job_with("Input", 100), 0);
  return *run;
}

void expect_as_alone(const TrainingRun& run) {
  EXPECT_EQ(run.weights(), unmoved().weights());
  EXPECT_EQ(run.audit(), unmoved().audit());
}

/// How many different plans steps ran under.
size_t plans_used(const TrainingRun& run) {
  std::set<uint64_t> plans;
  for (const auto& step : run.events("step")) plans.insert(step.at("plan").get<uint64_t>());
  return plans.size();
}

TEST(Moving, AStridedBlockOfResnet18MovesToWorkersAndBack) {
  const JobText small{.cut = "layer2.0.relu2",
                      .share = 75,
                      .steps = 8,
                      .batch = 8,
                      .micro_batch = 2,
                      .model = " {name: resnet18}"};
  JobText unsplit = small;
  unsplit.cut = "Input";
  const auto reference = train(unsplit, 0);
  TrainingRun run(small);
  run.start_server();
  run.start_worker();
  run.start_worker();
  run.wait_for_step(1);
  run.wish_plan(R"({"cut": "layer1", "sharePercent": 50})");
  run.wait_for_step(3);
  run.wish_plan(R"({"cut": "layer2.0.relu2", "sharePercent": 100})");
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_GE(plans_used(run), 2u);
  EXPECT_EQ(run.weights(), reference->weights());
  EXPECT_EQ(run.audit(), reference->audit());
}

TEST(Moving, ThePlannerMayMoveAsItLikes) {
  JobText automatic = job_with("Auto", -1);
  TrainingRun run(automatic);
  run.start_server();
  run.start_worker();
  run.start_worker();
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_as_alone(run);
  const auto plans = run.events("plan");
  ASSERT_FALSE(plans.empty());
  EXPECT_EQ(plans.front().at("cut"), "Input");
  for (const auto& plan : plans) EXPECT_FALSE(plan.at("reason").get<std::string>().empty());
}

TEST(Moving, ARefusedPlanChangesNothing) {
  TrainingRun run(job_with("relu1", 50));
  run.start_server();
  run.wait_for_step(1);
  EXPECT_EQ(run.wish_plan(R"({"cut": "nowhere", "sharePercent": 50})"), 400);
  EXPECT_EQ(run.wish_plan(R"({"cut": "relu3", "sharePercent": 50})"), 400);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(plans_used(run), 1u);
  expect_as_alone(run);
}

/// What the operator tells the server of a run whose split was edited.
std::string edited(const TrainingRun& run, int generation, const api::SplitSpec& split) {
  api::TrainingJob job = api::load_training_job(run.job_file());
  job.spec.split = split;
  return nlohmann::json{{"generation", generation},
                        {"job", nlohmann::json::parse(api::to_json_text(job))}}
      .dump();
}

/// A run that trains with a worker, for long enough to be told something.
std::unique_ptr<TrainingRun> to_be_edited(const std::string& cut, int share) {
  JobText job = job_with(cut, share);
  job.steps = 200;
  auto run = std::make_unique<TrainingRun>(job);
  run->start_server();
  run->start_worker();
  run->wait_for_step(1);
  return run;
}

TEST(Moving, AnEditedJobMovesTheServerThatRuns) {
  const auto started = to_be_edited("Input", 100);
  TrainingRun& run = *started;
  EXPECT_EQ(run.status().at("edits").at("generation"), 0);
  EXPECT_EQ(run.tell_job(edited(run, 2, {.cut = "relu2", .share_percent = 50})), 200);
  EXPECT_EQ(run.tell_job(edited(run, 3, {.cut = "relu3", .share_percent = 50})), 400)
      << "less than half is behind it";
  EXPECT_EQ(run.tell_job("{}"), 400);
  const auto edits = run.status().at("edits");
  EXPECT_EQ(edits.at("generation"), 3);
  EXPECT_NE(edits.at("refused").get<std::string>().find("spec.split.cut: 'relu3'"),
            std::string::npos);
  EXPECT_EQ(run.wait_for_server(), 0);
  const auto plans = run.events("plan");
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans.back().at("cut"), "relu2");
  EXPECT_EQ(plans.back().at("sharePercent"), 50);
  EXPECT_EQ(plans.back().at("reason"), "spec.split was edited");
}

TEST(Moving, AnEditOfWiresAloneKeepsThePlanAndMovesThem) {
  const auto started = to_be_edited("relu2", 50);
  TrainingRun& run = *started;
  api::SplitSpec split{.cut = "relu2", .share_percent = 50};
  split.wire = {api::WireFormat::kInt8, api::WireFormat::kBFloat16};
  EXPECT_EQ(run.tell_job(edited(run, 2, split)), 200);
  EXPECT_EQ(run.wait_for_server(), 0);
  const auto plans = run.events("plan");
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans.back().at("cut"), "relu2");
  EXPECT_EQ(plans.back().at("sharePercent"), 50);
  EXPECT_EQ(plans.back().at("activations"), "int8");
  EXPECT_EQ(plans.back().at("gradients"), "bfloat16");
}

TEST(Moving, AnEditThatLeavesThePlanToBeFoundGoesOnFromTheOneInForce) {
  const auto started = to_be_edited("relu2", 50);
  TrainingRun& run = *started;
  EXPECT_EQ(run.tell_job(edited(run, 2, {.cut = "relu2"})), 200);
  EXPECT_EQ(run.tell_job(edited(run, 3, {.cut = "Auto"})), 200);
  EXPECT_EQ(run.wish_plan(R"({"cut": "relu1", "sharePercent": 25})"), 202);
  EXPECT_EQ(run.wait_for_server(), 0);
  const auto plans = run.events("plan");
  // The planner may have moved before it was asked to rest; nobody went home to cut Input for the
  // edits.
  for (const auto& plan : plans) EXPECT_NE(plan.at("reason"), "spec.split was edited");
  EXPECT_EQ(plans.back().at("cut"), "relu1");
  EXPECT_EQ(plans.back().at("reason"), "asked for");
  EXPECT_EQ(run.events("profile").size(), 1u) << "it was measured once, when it was wanted";
}

TEST(Moving, LossyWiresDependOnThePlanAloneNotOnWhoWorks) {
  JobText lossy = job_with("relu2", 75);
  lossy.steps = 12;
  lossy.wire = "{activations: Int8, gradients: Int8}";
  const auto nobody = train(lossy, 0);
  TrainingRun run(lossy);
  run.start_server();
  run.start_worker({.fault = "sent-micro-batch:3:KILL"});
  run.start_worker({.fault = "got-gradient:2:KILL"});
  run.start_worker();
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(run.weights(), nobody->weights());
  lossy.wire.clear();
  EXPECT_NE(run.weights(), train(lossy, 0)->weights());
}

TEST(Moving, LinksOverGlooCarryTheSame) {
  JobText gloo = job_with("relu2", 75);
  gloo.steps = 5 * kSteps;  // a worker dials twice before it has joined
  JobText unsplit = job_with("Input", 100);
  unsplit.steps = gloo.steps;
  const auto reference = train(unsplit, 0);
  gloo.more_spec = "  network: {link: Gloo}\n";
  TrainingRun run(gloo);
  run.start_server();
  run.start_worker();
  run.start_worker({.fault = "sent-micro-batch:2:KILL"});
  run.wait_for_log("joined");
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(run.weights(), reference->weights());
  EXPECT_EQ(run.audit(), reference->audit());
}

JobText endless_job() {
  JobText job = job_with("Input", 100);
  job.steps = 100000;
  job.copy_data = true;
  job.more_spec = "  progressDeadlineSeconds: 5\n";
  return job;
}

/// Whoever opens a pipe that nobody writes to waits for ever, as on a file system that hangs.
void make_reads_hang(const TrainingRun& run) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.data() / "train")) {
    if (!entry.is_regular_file()) continue;
    std::filesystem::remove(entry.path());
    ASSERT_EQ(::mkfifo(entry.path().c_str(), 0600), 0);
  }
}

TEST(Watchdog, AServerThatGetsNoFurtherEndsItselfAsHung) {
  TrainingRun run(endless_job());
  run.start_server();
  run.wait_for_step(2);
  make_reads_hang(run);
  EXPECT_EQ(run.wait_for_server(), static_cast<int>(api::ExitCode::kHung));
  EXPECT_NE(run.server_log().find("no progress within 5 s"), std::string::npos);
}

TEST(Watchdog, SoDoesAWorkerWhoseReadsHang) {
  TrainingRun run(endless_job());
  run.start_server();
  const size_t reads = run.start_worker();
  run.wait_for_log("joined");
  run.wait_for_step(2);
  make_reads_hang(run);
  EXPECT_EQ(run.wait_for_worker(reads), static_cast<int>(api::ExitCode::kHung));
  EXPECT_NE(run.worker_log(reads).find("no progress within 5 s"), std::string::npos);
}

}  // namespace
}  // namespace outrigger::integration
