#include "gpu-server/worker_book.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

feed::MicroBatch pixels(float decode) {
  feed::MicroBatch batch;
  batch.times = {.decode = decode, .bytes_per_second = 1e8f};
  return batch;
}

TEST(WorkerBook, FollowsAWorkerThatSlowsDown) {
  WorkerBook book(2, 0.5);
  for (int i = 0; i < 10; ++i) book.note(pixels(0.1f));
  for (int i = 0; i < 60; ++i) book.note(pixels(0.4f));
  const WorkerMeasures measures = book.measures({});
  EXPECT_NEAR(measures.first_decode, 0.1, 1e-6);
  EXPECT_NEAR(measures.decode, 0.4, 1e-3);
  EXPECT_EQ(measures.cores, 2u);
}

TEST(WorkerBook, IsNotDeceivedByTheFirstResultOrByPausesOfAQuota) {
  WorkerBook book(1, 0.5);
  book.note(pixels(0.004f));
  for (int i = 0; i < 200; ++i) {
    // Every tenth falls into a pause.
    book.note(pixels(i % 10 == 9 ? 0.006f : 0.001f));
    if (i < 20) continue;
    EXPECT_NEAR(book.measures({}).decode, 0.0015, 0.0005) << "result " << i;
  }
  EXPECT_NEAR(book.measures({}).first_decode, 0.0014, 0.0001) << "one of eight";
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

TEST(WorkerBook, RemembersHowFastTheMachineWasWhenAStemRan) {
  WorkerBook book(1, 0);
  feed::MicroBatch batch;
  batch.times = {.cut = 5, .decode = 0.1f, .read = 0.02f, .forward = 0.2f};
  book.note(batch);
  for (int i = 0; i < 60; ++i) book.note(pixels(0.4f));
  const WorkerMeasures measures = book.measures({});
  EXPECT_NEAR(measures.stems.at(5).decode, 0.08, 1e-6) << "without reading";
  EXPECT_NEAR(measures.decode, 0.4, 1e-2);
  EXPECT_LT(measures.read, 1e-3) << "reading costs nothing any more";
}

TEST(WorkerBook, TakesTheSlowerDirectionOfTheLink) {
  WorkerBook book(1, 0);
  book.note(pixels(0.1f));
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
