#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "api/last_words.h"
#include "tests/integration/training/training_run.h"

/// Two ranks with two workers each: data parallel over Gloo, and what a lost rank does.
namespace outrigger::integration {
namespace {

JobText two_ranks() {
  return {.cut = "relu2", .share = 100, .steps = 40, .checkpoint_every = 5, .replicas = 2};
}

void start_all(TrainingRun& run, int workers_each, bool resume) {
  run.start_server(resume);
  run.start_second_rank(resume);
  for (int i = 0; i < workers_each; ++i) {
    run.start_worker();
    run.start_worker({.of_second_rank = true});
  }
}

std::string uninterrupted(int workers_each, const JobText& job = two_ranks()) {
  TrainingRun run(job);
  start_all(run, workers_each, false);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(run.wait_for_second_rank(), 0);
  return run.weights();
}

TEST(Replicas, WorkersDoNotMatterToTwoRanksEither) {
  EXPECT_EQ(uninterrupted(0), uninterrupted(2));
}

TEST(Replicas, NorDoesWhereStemsRun) {
  JobText half = two_ranks();
  half.share = 50;
  EXPECT_EQ(uninterrupted(1, half), uninterrupted(0));
}

TEST(Replicas, ALostRankEndsTheOtherAndTheResumedRunIsTheUninterruptedOne) {
  const std::string truth = uninterrupted(0);
  ASSERT_NE(truth, "none");
  TrainingRun run(two_ranks());
  start_all(run, 2, false);
  run.wait_for_step(12);
  run.signal_second_rank(SIGKILL);
  EXPECT_EQ(run.wait_for_server(), 23) << "the exit code of a lost replica";
  run.wait_for_second_rank();
  start_all(run, 2, true);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(run.wait_for_second_rank(), 0);
  EXPECT_EQ(run.weights(), truth);
}

/// Ranks that step by themselves and meet in every fourth step.
JobText meeting_now_and_then() {
  JobText job = two_ranks();
  job.more_training = "    syncEverySteps: 4\n";
  return job;
}

TEST(Replicas, StepsByThemselvesAreGoneOnWithToo) {
  const std::string truth = uninterrupted(1, meeting_now_and_then());
  EXPECT_NE(truth, uninterrupted(1)) << "another way of training";
  TrainingRun run(meeting_now_and_then());
  start_all(run, 2, false);
  run.wait_for_step(13);
  run.signal_second_rank(SIGTERM);
  EXPECT_EQ(run.wait_for_second_rank(), 20);
  EXPECT_EQ(run.wait_for_server(), 20);
  start_all(run, 1, true);
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(run.wait_for_second_rank(), 0);
  EXPECT_EQ(run.weights(), truth);
}

TEST(Replicas, StoppingOneStopsBothAfterTheSameStep) {
  TrainingRun run(two_ranks());
  start_all(run, 1, false);
  run.wait_for_step(6);
  run.signal_second_rank(SIGTERM);
  EXPECT_EQ(run.wait_for_second_rank(), 20);
  EXPECT_EQ(run.wait_for_server(), 20);
  EXPECT_NE(run.weights(), "none");
}

TEST(Replicas, RanksOfOneLaunchTrainAsServersOfTheirOwnDo) {
  TrainingRun run(two_ranks());
  run.start_ranks();
  EXPECT_EQ(run.wait_for_server(), 0) << run.server_log();
  EXPECT_EQ(run.weights(), uninterrupted(0));
  const auto words = api::parse_last_words(run.last_words());
  ASSERT_TRUE(words.has_value()) << run.last_words();
  EXPECT_EQ(words->code, api::ExitCode::kDone);
  EXPECT_EQ(words->progress.value("step", 0), 40);
}

double last_loss(const TrainingRun& run) {
  return run.events("step").back().at("loss").get<double>();
}

/// Both ranks by one command, asked to stop in the middle, and on to the end.
void stop_and_resume(TrainingRun& run) {
  run.start_ranks();
  run.wait_for_step(12);
  run.signal_server(SIGTERM);
  EXPECT_EQ(run.wait_for_server(), 20);
  run.start_ranks(true);
  EXPECT_EQ(run.wait_for_server(), 0) << run.server_log();
}

TEST(Replicas, GradientsMayTravelInBFloat16) {
  TrainingRun exact(two_ranks());
  exact.start_ranks();
  EXPECT_EQ(exact.wait_for_server(), 0);
  JobText job = two_ranks();
  job.more_training = "    allReducePrecision: BFloat16\n";
  const std::string truth = uninterrupted(1, job);
  TrainingRun run(job);
  stop_and_resume(run);
  EXPECT_EQ(run.weights(), truth) << "workers and stops change nothing";
  EXPECT_NE(run.weights(), exact.weights());
  EXPECT_NEAR(last_loss(run), last_loss(exact), 0.05 * last_loss(exact));
}

TEST(Replicas, MayShareTheClassesOfFacesOut) {
  JobText job = two_ranks();
  job.loss = "{arcFace: {margin: 0.3, scale: 16, partialFC: {sampleRate: 0.5}}}";
  job.validation = true;  // the first rank evaluates all classes
  const std::string truth = uninterrupted(1, job);
  TrainingRun run(job);
  stop_and_resume(run);
  EXPECT_EQ(run.weights(), truth);
  EXPECT_FALSE(run.events("evaluation").empty());
  const auto weights = tensors(run.directory() / "weights.safetensors").at("arcface.weight");
  EXPECT_EQ(weights.size(), 12U * 12U);
  EXPECT_EQ(std::ranges::count(weights, 0.0f), 0) << "every rank's classes are there";
}

/// Two ranks whose first evaluation takes seconds, which is longer than a step may.
JobText with_a_long_evaluation(const std::filesystem::path& folder) {
  constexpr int kCopies = 40000;
  JobText job = two_ranks();
  job.steps = 12;
  job.data = folder / "data";
  job.validation = true;
  job.more_training = "    evaluate: {everySteps: 8}\n";
  job.more_spec = "  progressDeadlineSeconds: 3\n";
  std::filesystem::copy(faces(), job.data, std::filesystem::copy_options::recursive);
  const auto person = std::filesystem::directory_iterator(job.data / "val")->path();
  const auto image = std::filesystem::directory_iterator(person)->path();
  for (int i = 0; i < kCopies; ++i)
    std::filesystem::create_hard_link(image, person / ("copy-" + std::to_string(i) + ".jpg"));
  return job;
}

TEST(Replicas, WaitForAnEvaluationThatTakesLongerThanAStepMay) {
  const TemporaryDirectory folder;
  TrainingRun run(with_a_long_evaluation(folder.path()));
  run.start_ranks();
  ASSERT_EQ(run.wait_for_server(), 0) << run.server_log();
  const double longest = run.events("evaluation").front().at("seconds");
  if (longest < 3) GTEST_SKIP() << "this machine evaluates in " << longest << " s";
}

TEST(Replicas, StopTogetherInTheMiddleOfAnEvaluation) {
  const TemporaryDirectory folder;
  TrainingRun run(with_a_long_evaluation(folder.path()));
  start_all(run, 0, false);
  run.wait_for_step(7);
  run.signal_second_rank(SIGTERM);
  EXPECT_EQ(run.wait_for_second_rank(), 20);
  EXPECT_EQ(run.wait_for_server(), 20) << run.server_log();
  EXPECT_TRUE(run.events("evaluation").empty()) << "it is left to the run that goes on";
  EXPECT_EQ(run.checkpoints().back(), 8);
}

/// It is no child of ours, and its parent has seen its end.
bool is_gone(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

TEST(Replicas, ALaunchWhoseRankDiesEndsWithItsStatusAndLeavesNoRankBehind) {
  TrainingRun run(two_ranks());
  run.start_ranks();
  run.wait_for_step(12);
  const auto ranks = run.rank_processes();
  ASSERT_EQ(ranks.size(), 2U);
  ::kill(ranks[1], SIGKILL);
  EXPECT_EQ(run.wait_for_server(), 128 + SIGKILL) << "and not that of the rank that lost it";
  EXPECT_TRUE(is_gone(ranks[0]));
  EXPECT_EQ(run.last_words(), "") << "whoever is killed says nothing";
  run.start_ranks(true);
  EXPECT_EQ(run.wait_for_server(), 0) << run.server_log();
  EXPECT_EQ(run.weights(), uninterrupted(0));
}

TEST(Replicas, ALaunchThatIsInterruptedFromATerminalStopsItsRanksOnce) {
  TrainingRun run(two_ranks());
  run.start_ranks();
  run.wait_for_step(6);
  const auto ranks = run.rank_processes();
  run.signal_server_group(SIGINT);
  EXPECT_EQ(run.wait_for_server(), 20) << run.server_log();
  EXPECT_NE(run.weights(), "none");
  const auto words = api::parse_last_words(run.last_words());
  ASSERT_TRUE(words.has_value()) << run.last_words();
  EXPECT_EQ(words->code, api::ExitCode::kStopped);
  for (const pid_t rank : ranks) EXPECT_TRUE(is_gone(rank));
}

TEST(Replicas, ALaunchTellsWhichRankFailedOfWhat) {
  JobText job = two_ranks();
  job.rate = "100000.0";
  job.steps = 200;
  TrainingRun run(job);
  run.start_ranks();
  EXPECT_EQ(run.wait_for_server(), 13) << run.server_log();
  const auto words = api::parse_last_words(run.last_words());
  ASSERT_TRUE(words.has_value()) << run.last_words();
  EXPECT_EQ(words->code, api::ExitCode::kNumericalError);
  EXPECT_TRUE(words->message.starts_with("rank ")) << words->message;
}

}  // namespace
}  // namespace outrigger::integration
