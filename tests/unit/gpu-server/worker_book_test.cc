#include "gpu-server/planning/worker_book.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

/// One in a step.
feed::MicroBatch pixels(uint64_t step, float decode) {
  feed::MicroBatch batch;
  batch.key.step = step;
  batch.times = {.decode = decode, .bytes_per_second = 1e8f};
  return batch;
}

TEST(WorkerBook, FollowsAWorkerThatSlowsDown) {
  WorkerBook book(2, 0.5);
  for (uint64_t step = 0; step < 10; ++step) book.note(pixels(step, 0.1f));
  for (uint64_t step = 10; step < 70; ++step) book.note(pixels(step, 0.4f));
  const WorkerMeasures measures = book.measures({});
  EXPECT_NEAR(measures.first_decode, 0.1, 1e-6);
  EXPECT_NEAR(measures.decode, 0.4, 1e-3);
  EXPECT_EQ(measures.cores, 2u);
}

TEST(WorkerBook, IsNotDeceivedByTheFirstResultOrByPausesOfAQuota) {
  WorkerBook book(1, 0.5);
  book.note(pixels(0, 0.004f));
  for (uint64_t step = 1; step <= 200; ++step) {
    // Every tenth falls into a pause.
    book.note(pixels(step, step % 10 == 0 ? 0.006f : 0.001f));
    if (step <= 20) continue;
    EXPECT_NEAR(book.measures({}).decode, 0.0015, 0.0005) << "result " << step;
  }
  EXPECT_NEAR(book.measures({}).first_decode, 0.0014, 0.0001) << "one of eight";
}

TEST(WorkerBook, AStandstillThatLastsForOneResultTellsLittle) {
  WorkerBook book(1, 0.5);
  for (uint64_t step = 0; step < 20; ++step) book.note(pixels(step, 0.01f));
  book.note(pixels(20, 0.4f));
  EXPECT_NEAR(book.measures({}).decode, 0.013, 1e-6) << "a tenth of four times as much, not of 40";
  for (uint64_t step = 21; step < 80; ++step) book.note(pixels(step, 0.4f));
  EXPECT_NEAR(book.measures({}).decode, 0.4, 1e-2) << "what lasts shows all the same";
}

TEST(WorkerBook, AfterSomeResultsThatAreAllOthersBeginsAnewWithThem) {
  for (const float then : {0.01f, 0.1f, 1.0f}) {
    WorkerBook book(1, 0.5);
    for (uint64_t step = 0; step < 20; ++step) book.note(pixels(step, 0.1f));
    for (uint64_t step = 20; step < 23; ++step) book.note(pixels(step, then));
    const double before = book.measures({}).decode;
    EXPECT_NEAR(before, 0.1, 0.12) << then;
    book.note(pixels(23, then));
    EXPECT_NEAR(book.measures({}).decode, then, 1e-6);
    EXPECT_NEAR(book.measures({}).first_decode, 0.1, 1e-6);
  }
}

TEST(WorkerBook, OnceTheMachineIsFasterWhatItToldOfItsLinkIsLate) {
  WorkerBook book(1, 0.5);
  transport::LinkStats link;
  link.send_rate = link.receive_rate = 5e8;
  for (uint64_t step = 0; step < 20; ++step) EXPECT_FALSE(book.note(pixels(step, 0.1f)));
  EXPECT_EQ(book.measures(link).bytes_per_second, 1e8) << "the slower side";
  for (uint64_t step = 20; step < 23; ++step) EXPECT_FALSE(book.note(pixels(step, 0.01f)));
  EXPECT_TRUE(book.note(pixels(23, 0.01f)));
  EXPECT_EQ(book.measures(link).bytes_per_second, 5e8);
  EXPECT_EQ(book.measures({}).bytes_per_second, 1e8) << "where nothing else is known";
  for (uint64_t step = 24; step < 100; ++step) EXPECT_FALSE(book.note(pixels(step, 0.01f)));
  EXPECT_EQ(book.measures(link).bytes_per_second, 1e8);
  for (uint64_t step = 100; step < 110; ++step)
    EXPECT_FALSE(book.note(pixels(step, 0.1f))) << "it is slower, and so may the link be";
}

TEST(WorkerBook, AfterOthersThatAreNotInARowDoesNot) {
  WorkerBook book(1, 0.5);
  for (uint64_t step = 0; step < 20; ++step) book.note(pixels(step, 0.1f));
  for (uint64_t step = 20; step < 40; ++step) book.note(pixels(step, step % 4 < 3 ? 0.05f : 0.12f));
  EXPECT_GT(book.measures({}).decode, 0.055);
}

TEST(WorkerBook, LearnsNothingOfTrainingFromEvaluations) {
  WorkerBook book(1, 0.5);
  for (uint64_t step = 0; step < 20; ++step) book.note(pixels(step, 0.1f));
  for (uint64_t step = 0; step < 300; ++step)
    book.note(pixels(feed::kFirstEvaluation + step / 100, 0.3f));
  EXPECT_NEAR(book.measures({}).decode, 0.1, 1e-6);
}

TEST(WorkerBook, ASlowReadSaysNothingOfTheMachine) {
  for (const uint64_t slow : {2u, 20u}) {
    WorkerBook book(1, 0.5);
    for (uint64_t step = 0; step < 30; ++step) {
      feed::MicroBatch batch = pixels(step, step == slow ? 0.408f : 0.01f);
      batch.times.read = step == slow ? 0.4f : 0.002f;
      book.note(batch);
    }
    EXPECT_NEAR(book.measures({}).first_work, 0.008, 0.001) << "read " << slow;
    EXPECT_NEAR(book.measures({}).work(), 0.008, 0.001) << "read " << slow;
  }
}

TEST(WorkerBook, KeepsStemsByCut) {
  WorkerBook book(1, 0);
  feed::MicroBatch batch;
  batch.times = {.cut = 5, .decode = 0.1f, .forward = 0.2f};
  book.note(batch);
  feed::StemGradient gradient;
  gradient.times = {.cut = 5, .decode = 0.1f, .forward = 0.2f, .backward = 0.3f};
  book.note(gradient);
  const auto stems = book.measures({}).stems;
  ASSERT_EQ(stems.size(), 1u);
  EXPECT_NEAR(stems.at(5).forward, 0.2, 1e-6);
  EXPECT_NEAR(stems.at(5).backward, 0.3, 1e-6);
}

TEST(WorkerBook, WhatRunsNowTellsMoreOfStemsThanWhatRanBefore) {
  WorkerBook book(1, 0);
  feed::MicroBatch batch;
  const auto note = [&](int32_t cut, int times) {
    batch.times = {.cut = cut, .decode = 0.1f, .forward = 0.2f};
    for (int i = 0; i < times; ++i, ++batch.key.step) book.note(batch);
    return book.measures({}).stems;
  };
  EXPECT_EQ(note(5, 1).at(5).weight, 1);
  EXPECT_NEAR(note(7, 2).at(5).weight, 0.75, 1e-9);
  const auto stems = note(7, 20);
  EXPECT_EQ(stems.at(5).weight, 0);
  EXPECT_EQ(stems.at(7).weight, 1);
  EXPECT_NEAR(note(5, 1).at(7).weight, 0.875, 1e-9) << "and when that runs again";
  feed::StemGradient late;
  late.times = {.cut = 7, .backward = 0.3f};
  book.note(late);
  EXPECT_EQ(book.measures({}).stems.at(5).weight, 1) << "a gradient runs no stem anew";
}

TEST(WorkerBook, FollowsLayersFromWhatTheWorkerToldWhenItJoined) {
  WorkerBook book(1, 0, 0, {{1, 2}, {0, 0}});
  feed::StemGradient gradient;
  gradient.times = {.cut = 3, .layers = {{0, 4}, {3, 0}, {5, 6}}};
  book.note(gradient);
  const auto layers = book.measures({}).layers;
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].forward, 1) << "not timed again";
  EXPECT_EQ(layers[0].backward, 2.5f);
  EXPECT_EQ(layers[1].forward, 3) << "timed for the first time";
  EXPECT_EQ(layers[2].backward, 6);
}

TEST(WorkerBook, ResultsOfAStepWeighAsMuchTogetherHoweverManyThereAre) {
  for (const uint32_t per_step : {1u, 8u}) {
    WorkerBook book(1, 0);
    feed::MicroBatch batch;
    for (uint64_t step = 0; step < 50; ++step) {
      for (uint32_t index = 0; index < per_step; ++index) {
        batch.key = {.step = step, .index = index};
        batch.times = {.cut = 5, .decode = 0.1f, .forward = step < 49 ? 0.2f : 0.4f};
        book.note(batch);
      }
    }
    EXPECT_NEAR(book.measures({}).stems.at(5).forward, 0.248, 0.004) << per_step << " in a step";
  }
}

TEST(WorkerBook, AnEvaluationBetweenStepsDoesNotStopTheCount) {
  WorkerBook book(1, 0);
  feed::MicroBatch batch;
  const auto note = [&](uint64_t step, float forward) {
    batch.key = {.step = step};
    batch.times = {.cut = 5, .decode = 0.1f, .forward = forward};
    book.note(batch);
  };
  for (uint64_t step = 0; step < 20; ++step) note(step, 0.2f);
  for (int i = 0; i < 100; ++i) note(uint64_t{1} << 62, 0.2f);
  for (uint64_t step = 20; step < 40; ++step) note(step, 0.4f);
  EXPECT_NEAR(book.measures({}).stems.at(5).forward, 0.4, 0.01);
}

TEST(WorkerBook, RemembersHowFastTheMachineWasWhenAStemRan) {
  WorkerBook book(1, 0);
  feed::MicroBatch batch;
  batch.times = {.cut = 5, .decode = 0.1f, .read = 0.02f, .forward = 0.2f};
  book.note(batch);
  for (uint64_t step = 1; step <= 60; ++step) book.note(pixels(step, 0.4f));
  const WorkerMeasures measures = book.measures({});
  EXPECT_NEAR(measures.stems.at(5).decode, 0.08, 1e-6) << "without reading";
  EXPECT_NEAR(measures.decode, 0.4, 1e-2);
  EXPECT_LT(measures.read, 1e-3) << "reading costs nothing any more";
}

TEST(WorkerBook, TakesTheSlowerDirectionOfTheLink) {
  WorkerBook book(1, 0);
  book.note(pixels(0, 0.1f));
  transport::LinkStats link;
  EXPECT_NEAR(book.measures(link).bytes_per_second, 1e8, 1);
  link.send_rate = 5e7;
  EXPECT_NEAR(book.measures(link).bytes_per_second, 5e7, 1);
}

TEST(WorkerBook, TakesTheDirectionOfTheLinkThatIsKnown) {
  transport::LinkStats link;
  EXPECT_EQ(WorkerBook(1, 0).measures(link).bytes_per_second, 0);
  link.send_rate = 5e7;
  EXPECT_NEAR(WorkerBook(1, 0).measures(link).bytes_per_second, 5e7, 1);
}

}  // namespace
}  // namespace outrigger::gpu_server
