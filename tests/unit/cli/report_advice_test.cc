#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/advice.h"
#include "cli/report/split_notes.h"
#include "tests/unit/api/sample_job.h"
#include "tests/unit/cli/report_fixture.h"

namespace outrigger::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string advice_for(const char* cause, const SplitNotes& split) {
  return advice({.stall_percent = 30, .stall_cause = cause, .split = split});
}

TEST(Advice, NamesTheLimitAndTheRemedy) {
  EXPECT_THAT(advice({.stall_percent = 1}), HasSubstr("The device is the limit"));
  EXPECT_THAT(advice_for("Link", {}), HasSubstr("Int8"));
  EXPECT_THAT(advice_for("Stem", {}), HasSubstr("sharePercent"));
  EXPECT_THAT(advice({.optimizer_percent = 40}), HasSubstr("batchSize"));
  EXPECT_THAT(advice({.optimizer_percent = 12, .ranks_percent = 40}),
              HasSubstr("The wait for other ranks takes 40 % of the time."));
  EXPECT_THAT(advice({.optimizer_percent = 40, .ranks_percent = 12}), HasSubstr("optimizer"));
}

TEST(Advice, IsOfWhatTakesMost) {
  const auto told = [](double stall, double optimizer, double ranks) {
    return advice({.stall_percent = stall,
                   .stall_cause = "Decode",
                   .optimizer_percent = optimizer,
                   .ranks_percent = ranks});
  };
  EXPECT_THAT(told(6, 3, 56), testing::StartsWith("The wait for other ranks takes 56 %"));
  EXPECT_THAT(told(20, 30, 10), testing::StartsWith("The end of each step (sums, optimizer, "
                                                    "commit) takes 30 % of the time. A larger"));
  EXPECT_THAT(told(1, 30, 10), HasSubstr("and the device waits for little else. A larger"));
  EXPECT_THAT(told(6, 8, 9), testing::StartsWith("The device waits 6 % of its time"));
  EXPECT_THAT(told(40, 30, 30), testing::StartsWith("The device waits 40 % of its time"));
  EXPECT_THAT(told(4, 9, 9), testing::StartsWith("The device is the limit"));
}

TEST(Advice, SaysWhatRanksOnTheCoresOfOneMachineCost) {
  Limits limits{.ranks_percent = 56};
  EXPECT_THAT(advice(limits), HasSubstr("a faster network between servers"));
  limits.split.ranks_share_cores = true;
  EXPECT_THAT(advice(limits), HasSubstr("cost more than they bring"));
  EXPECT_THAT(advice(limits), Not(HasSubstr("network")));
}

TEST(Advice, BeginsWithWhatARunFailedOf) {
  EXPECT_THAT(advice({.failure = "The run failed after 3 of 9 steps: BadData."}),
              testing::StartsWith("The run failed after 3 of 9 steps: BadData. The device is"));
}

TEST(Advice, SaysWhatHoldsTrainingUpBetweenStepsFirst) {
  const std::string text =
      advice({.stall_percent = 30, .stall_cause = "Decode", .evaluation_percent = 40});
  EXPECT_THAT(text, testing::StartsWith("Training stands still 40 % of its time while the server "
                                        "evaluates. A larger spec.training.evaluate.everySteps"));
  EXPECT_THAT(text, HasSubstr("so would workers, which"));
  EXPECT_THAT(text, HasSubstr("Within steps the device waits 30 % of its time"));
  EXPECT_THAT(advice({.workers = 2, .evaluation_percent = 40}), HasSubstr("so would more workers"));
  EXPECT_THAT(advice({.checkpoint_percent = 20}), HasSubstr("spec.checkpoint.everySteps"));
  EXPECT_THAT(advice({.evaluation_percent = 3, .checkpoint_percent = 3}),
              testing::StartsWith("The device is the limit"));
}

TEST(Advice, LeavesTheEvaluationToTheServerWhereTheJobStopsEarly) {
  Limits limits{.workers = 2, .evaluation_percent = 40, .split = {.stops_early = true}};
  EXPECT_THAT(advice(limits), HasSubstr("evaluate.everySteps would help. Within"));
  limits.split = {.workers_evaluate = true};
  EXPECT_THAT(advice(limits), HasSubstr("can evaluate beside training. Within")) << "it has that";
}

TEST(Advice, NamesNoSumsInBFloat16WhereThatIsSetOrRefused) {
  Limits limits{.ranks_percent = 56};
  EXPECT_THAT(advice(limits), HasSubstr("allReducePrecision"));
  limits.split = {.sums_are_bfloat16 = true};
  EXPECT_THAT(advice(limits), HasSubstr("servers, or a larger spec.training.batchSize would help"));
  limits.split = {.ranks_step_alone = true};
  EXPECT_THAT(advice(limits), Not(HasSubstr("allReducePrecision")));
}

TEST(Advice, HasNoWireForPixelsWhichAreBytes) {
  const std::string fixed = advice_for("Link", {.stems_away = false, .activations = "float32"});
  EXPECT_THAT(fixed, HasSubstr("Faster links or spec.split.cut: Auto would help."));
  EXPECT_THAT(advice_for("Link", {.stems_away = false, .cut_is_open = true}),
              HasSubstr("Faster links or more cores for the server would help."));
}

TEST(Advice, NamesTheWiresThatAreWiderThanAByte) {
  SplitNotes split{.activations = "float32", .gradients = "float32"};
  EXPECT_THAT(advice_for("Link", split),
              HasSubstr("spec.split.wire: {activations: Int8, gradients: Int8}, "));
  split.activations = "int8";
  EXPECT_THAT(advice_for("Link", split), HasSubstr("spec.split.wire: {gradients: Int8}, "));
  split.gradients = "int8";
  EXPECT_THAT(advice_for("Link", split), Not(HasSubstr("wire")));
  split = {.stems_train = false, .activations = "bfloat16", .gradients = "bfloat16"};
  EXPECT_THAT(advice_for("Link", split), HasSubstr("spec.split.wire: {activations: Int8}, "));
}

TEST(Advice, HasNoStalenessForStemsThatAreFrozenOrHaveItNorForRanksThatStepAlone) {
  for (const char* cause : {"Stem", "Weights"}) {
    EXPECT_THAT(advice_for(cause, {}), HasSubstr("spec.training.staleness: 1"));
    EXPECT_THAT(advice_for(cause, {.stems_train = false}), Not(HasSubstr("staleness"))) << cause;
    EXPECT_THAT(advice_for(cause, {.staleness = 1}), Not(HasSubstr("staleness"))) << cause;
    EXPECT_THAT(advice_for(cause, {.ranks_step_alone = true}), Not(HasSubstr("staleness")))
        << cause;
  }
}

TEST(Advice, LeavesToThePlannerWhatItChooses) {
  const SplitNotes open{
      .stems_train = false, .cut_is_open = true, .share_is_open = true, .activations = "int8"};
  EXPECT_THAT(advice_for("Stem", open), HasSubstr("for: Stem. More or faster workers would help."));
  EXPECT_THAT(advice_for("Link", open),
              HasSubstr("Faster links or more cores for the server would help."));
  EXPECT_THAT(advice_for("Weights", open), HasSubstr("for: Weights. Faster links would help."));
}

TEST_F(ReportTest, ItsAdviceKnowsTheLastPlanAndTheJob) {
  const std::string plan =
      R"({"type":"plan","plan":1,"step":0,"cut":"pool1","stemsAway":4,"sharePercent":50,"activations":"int8","gradients":"float32","reason":"r"})"
      "\n";
  write(plan + step(0, 0.4, "Link") + step(1, 0.4, "Link"));
  const auto notes = [&] { return split_notes(read_history(folder()), folder()); };
  EXPECT_TRUE(notes().stems_train) << "without the job";
  EXPECT_FALSE(notes().is_planned());
  EXPECT_THAT(page(), HasSubstr("spec.split.wire: {gradients: Int8}"));

  write(api::sample_with("{name: lenet5}", "{name: lenet5, freezeUntil: pool1}"), "job.yaml");
  EXPECT_FALSE(notes().stems_train);
  EXPECT_TRUE(notes().cut_is_open) << "cut: Auto is the default";
  EXPECT_TRUE(notes().share_is_open);
  EXPECT_THAT(page(), Not(HasSubstr("wire")));

  write(api::sample_text("  split: {cut: relu2, sharePercent: 50}\n"), "job.yaml");
  EXPECT_TRUE(notes().stems_train);
  EXPECT_FALSE(notes().is_planned());

  write("spec: {model: {name: lenet9}}\n", "job.yaml");
  EXPECT_THAT(page(), HasSubstr("What limits this run")) << "a job of another version";
}

TEST_F(ReportTest, ItsAdviceKnowsRanksThatRanOnTheCoresOfOneMachine) {
  write(step(0, 0.1) + step(1, 0.1));
  write("", "server-1.log");
  const auto shared = [&] {
    return split_notes(read_history(folder()), folder()).ranks_share_cores;
  };
  EXPECT_FALSE(shared()) << "of a former run: this one has one rank";
  write(step(0, 0.1) + step(1, 0.1), "metrics-1.jsonl");
  EXPECT_TRUE(shared());
  write(api::sample_text("  server: {gpus: 2}\n"), "job.yaml");
  EXPECT_FALSE(shared()) << "each has a GPU";
  std::filesystem::remove(folder() / "job.yaml");
  std::filesystem::remove(folder() / "server-1.log");
  EXPECT_FALSE(shared()) << "pods of a cluster";
}

TEST_F(ReportTest, ItsAdviceKnowsWhatTheJobsSettingsAllow) {
  write(step(0, 0.1) + step(1, 0.1));
  const auto notes = [&](const std::string& data, const std::string& training) {
    std::string text = api::sample_with("epochs: 3\n", "epochs: 3\n" + training);
    text.replace(text.find("    image:"), 0, data);
    write(text, "job.yaml");
    return split_notes(read_history(folder()), folder());
  };
  const SplitNotes plain = notes("", "");
  EXPECT_FALSE(plain.ranks_step_alone || plain.sums_are_bfloat16);
  EXPECT_FALSE(plain.stops_early || plain.workers_evaluate);
  EXPECT_TRUE(notes("", "    syncEverySteps: 4\n").ranks_step_alone);
  EXPECT_TRUE(notes("", "    allReducePrecision: BFloat16\n").sums_are_bfloat16);
  const std::string held_out = "    validation: {path: held-out}\n";
  EXPECT_TRUE(notes(held_out, "    evaluate: {stopAfterNoGain: 3}\n").stops_early);
  EXPECT_TRUE(notes(held_out, "    evaluate: {place: Workers}\n").workers_evaluate);
}

TEST_F(ReportTest, ItsAdviceKnowsTheClassesOfANetworkInLayers) {
  write(R"({"type":"plan","plan":1,"step":0,"cut":"pool","stemsAway":4,"reason":"r"})"
        "\n" +
        step(0, 0.4, "Stem"));
  write(api::sample_with("model: {name: lenet5}",
                         "model:\n"
                         "    freezeUntil: pool\n"
                         "    layers:\n"
                         "      - {name: conv, convolution: {channels: 4, kernel: 3}}\n"
                         "      - {name: pool, maxPool: {kernel: 2, stride: 2}}\n"
                         "      - {name: flat, flatten: {}}\n"
                         "      - {name: fc, linear: {features: 5}}"),
        "job.yaml");
  EXPECT_FALSE(split_notes(read_history(folder()), folder()).stems_train);
}

}  // namespace
}  // namespace outrigger::cli
