#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/training/training_run.h"

/// What a job may ask of its training beside steps: averages, the best checkpoint, an early stop,
/// balanced classes, clipped gradients; and what evaluate and embed make of the weights.
namespace outrigger::integration {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What the program prints.
std::string outrigger(const std::vector<std::string>& arguments) {
  const TemporaryDirectory folder("outrigger-cli");
  const auto log = folder.path() / "log";
  ChildProcess child(OUTRIGGER_CLI, arguments, log);
  while (!child.poll()) ::usleep(10'000);
  EXPECT_EQ(*child.poll(), 0) << read_file(log);
  return read_file(log);
}

json manifest(const TrainingRun& run, const std::string& checkpoint) {
  return json::parse(read_file(run.directory() / checkpoint / "state.json"));
}

const JobText kEvaluated{.cut = "relu2",
                         .share = 75,
                         .steps = 30,
                         .checkpoint_every = 5,
                         .keep = 100,
                         .more_training =
                             "    averageWeights: 0.9\n"
                             "    evaluate: {everySteps: 5, keepBest: true}\n",
                         .validation = true};

const TrainingRun& evaluated() {
  static const std::unique_ptr<TrainingRun> run = train(kEvaluated, 2);
  return *run;
}

TEST(TrainingOptions, AveragedWeightsAreWhatIsEvaluatedAndHandedOut) {
  const auto handed_out = tensors(evaluated().directory() / "weights.safetensors");
  const auto newest = evaluated().directory() / "step-30";
  EXPECT_EQ(handed_out, tensors(newest / "averaged.safetensors"));
  EXPECT_NE(handed_out, tensors(newest / "weights.safetensors"));
  JobText without = kEvaluated;
  without.more_training.clear();
  EXPECT_EQ(train(without, 0)->weights(), evaluated().weights()) << "training itself is the same";
}

TEST(TrainingOptions, WhatIsComputedAgainIsWhatWasNotKept) {
  JobText job{.cut = "relu2", .share = 50};
  const auto kept = train(job, 1);
  job.more_training = "    recompute: Activations\n";
  EXPECT_EQ(train(job, 1)->weights(), kept->weights());
}

TEST(TrainingOptions, TheAverageIsTheOneOfTheFormula) {
  JobText job = kEvaluated;
  job.steps = 3;
  job.checkpoint_every = 1;
  const auto run = train(job, 0);
  const auto of = [&](int step, const char* file) {
    return tensors(run->directory() / ("step-" + std::to_string(step)) / file)
        .at("classifier.weight");
  };
  const auto former = of(2, "averaged.safetensors");
  const auto weights = of(3, "weights.safetensors");
  const auto average = of(3, "averaged.safetensors");
  for (size_t i = 0; i < average.size(); ++i) {
    const double expected = 0.9 * former[i] + 0.1 * weights[i];
    ASSERT_NEAR(average[i], expected, 4e-7 * std::abs(expected) + 1e-9) << i;
  }
}

TEST(TrainingOptions, TheBestCheckpointIsThatOfTheBestEvaluation) {
  const auto evaluations = evaluated().events("evaluation");
  ASSERT_EQ(evaluations.size(), 6u);
  json best = evaluations.front();
  for (const auto& one : evaluations) {
    if (one.at("accuracy") > best.at("accuracy")) best = one;
  }
  const auto step = best.at("step").get<int64_t>();
  const json kept = manifest(evaluated(), "best");
  EXPECT_EQ(kept.at("bestStep"), step);
  EXPECT_EQ(kept.at("step"), step);
  EXPECT_EQ(kept.at("bestMetric"), best.at("accuracy"));
  const auto then = evaluated().directory() / ("step-" + std::to_string(step));
  for (const char* file : {"weights.safetensors", "averaged.safetensors"})
    EXPECT_EQ(tensors(evaluated().directory() / "best" / file), tensors(then / file)) << file;
}

TEST(TrainingOptions, NoGainForAWhileEndsTheRunAtOnceAndComplete) {
  JobText job = kEvaluated;
  job.steps = 2000;
  job.rate = "0.000001";
  job.more_training = "    evaluate: {everySteps: 2, stopAfterNoGain: 3}\n";
  const auto run = train(job, 2);
  double best = -1;
  int64_t stop = -1;
  int without_gain = 0;
  for (const auto& one : run->events("evaluation")) {
    EXPECT_EQ(stop, -1) << "it should have stopped before";
    const bool gain = one.at("accuracy").get<double>() > best;
    best = std::max(best, one.at("accuracy").get<double>());
    without_gain = gain ? 0 : without_gain + 1;
    if (without_gain == 3) stop = one.at("step").get<int64_t>();
  }
  ASSERT_GT(stop, 0);
  EXPECT_EQ(run->checkpoints().back(), stop);
  EXPECT_TRUE(fs::exists(run->directory() / "weights.safetensors"));

  run->start_server(true);
  EXPECT_EQ(run->wait_for_server(), 0) << "what has ended early has ended: " << run->server_log();
  EXPECT_EQ(run->checkpoints().back(), stop);
}

TEST(TrainingOptions, AnEvaluationThatAStopCutShortIsMadeUpForByTheNextServer) {
  JobText job = kEvaluated;
  job.steps = 60;
  job.more_training = "    evaluate: {everySteps: 1}\n";
  TrainingRun run(job);
  for (const int step : {5, 15, 25, 35}) {
    run.start_server(step > 5);
    run.wait_for_step(step);  // its evaluation begins now, and a stop is likely to cut it short
    run.signal_server(SIGTERM);
    ASSERT_EQ(run.wait_for_server(), 20) << run.server_log();
  }
  run.start_server(true);
  ASSERT_EQ(run.wait_for_server(), 0) << run.server_log();
  std::set<int64_t> steps;
  for (const auto& one : run.events("evaluation")) steps.insert(one.at("step").get<int64_t>());
  EXPECT_EQ(steps.size(), 60u) << "the last is of step " << *steps.rbegin();
}

TEST(TrainingOptions, BalancedSamplingShowsEveryClassAsOften) {
  JobText job{.cut = "relu2", .share = 75, .steps = 20, .copy_data = true};
  const auto keep_one_photo_but_of_the_first = [](const TrainingRun& run) {
    for (const auto& person : fs::directory_iterator(run.data() / "train")) {
      if (person.path().filename() == "0000") continue;
      std::vector<fs::path> photos;
      for (const auto& photo : fs::directory_iterator(person)) photos.push_back(photo.path());
      for (size_t i = 1; i < photos.size(); ++i) fs::remove(photos[i]);
    }
  };
  const auto share_of_the_first = [&](const std::string& sampling, int workers,
                                      std::string* weights) {
    job.more_data = "    sampling: " + sampling + "\n";
    TrainingRun run(job);
    keep_one_photo_but_of_the_first(run);
    run.start_server();
    for (int i = 0; i < workers; ++i) run.start_worker();
    EXPECT_EQ(run.wait_for_server(), 0) << run.server_log();
    double first = 0;
    double all = 0;
    for (const auto& step : run.audit()) {
      for (const auto& samples : step.second.samples) {
        for (const uint32_t sample : samples) {
          first += sample < 7 ? 1 : 0;
          all += 1;
        }
      }
    }
    *weights = run.weights();
    return first / all;
  };
  std::string alone;
  std::string with_workers;
  EXPECT_NEAR(share_of_the_first("Uniform", 0, &alone), 7.0 / 18, 0.02);
  // 320 draws: four standard deviations are 0.06.
  EXPECT_NEAR(share_of_the_first("ClassBalanced", 0, &alone), 1.0 / 12, 0.062);
  share_of_the_first("ClassBalanced", 2, &with_workers);
  EXPECT_EQ(alone, with_workers);
}

double distance(const fs::path& one, const fs::path& other) {
  const auto a = tensors(one);
  const auto b = tensors(other);
  double sum = 0;
  for (const auto& [name, values] : a) {
    if (name.find("running") != std::string::npos) continue;
    for (size_t i = 0; i < values.size(); ++i) sum += std::pow(values[i] - b.at(name)[i], 2);
  }
  return std::sqrt(sum);
}

TEST(TrainingOptions, AClippedGradientBoundsTheStep) {
  // One step from rest, of at most rate * (clip + decay * |weights|); |weights| is below 20 here.
  const auto step_of = [](const std::string& clip) {
    const auto run = train({.steps = 2, .checkpoint_every = 1, .clip = clip}, 1);
    for (const auto& step : run->events("step")) EXPECT_GT(step.at("gradientNorm"), 0.1);
    return distance(run->directory() / "step-1" / "weights.safetensors",
                    run->directory() / "step-2" / "weights.safetensors");
  };
  const double decay = 0.0005 * 20;
  EXPECT_LE(step_of("0.01"), 0.05 * 1.9 * (0.01 + decay));
  EXPECT_GT(step_of("1000"), 0.05 * 1.9 * (0.01 + decay));
}

TEST(TrainingOptions, EvaluateGivesWhatTheRunMeasured) {
  const json told = json::parse(outrigger({"evaluate", evaluated().directory().string(), "--data",
                                           (faces() / "val").string(), "-o", "json"}));
  const json last = evaluated().events("evaluation").back();
  EXPECT_EQ(told.at("images"), 36);
  EXPECT_DOUBLE_EQ(told.at("top1").at("accuracy").get<double>(), last.at("accuracy").get<double>());
  const json best = json::parse(outrigger({"evaluate", (evaluated().directory() / "best").string(),
                                           "--data", (faces() / "val").string(), "-o", "json"}));
  EXPECT_TRUE(best.at("top1").contains("accuracy"));
}

TEST(TrainingOptions, EmbedWritesAUnitVectorForEveryPhoto) {
  const std::string lines =
      outrigger({"embed", evaluated().directory().string(), (faces() / "val").string()});
  std::istringstream stream(lines);
  int photos = 0;
  for (std::string line; std::getline(stream, line);) {
    const json one = json::parse(line, nullptr, false);
    if (one.is_discarded() || !one.is_object()) continue;
    double square = 0;
    for (const double value : one.at("embedding").get<std::vector<double>>())
      square += value * value;
    EXPECT_NEAR(square, 1, 1e-5);
    ++photos;
  }
  EXPECT_EQ(photos, 36);
}

}  // namespace
}  // namespace outrigger::integration
