#include "gpu-server/links/server_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/gpu-server/server_feed_fixture.h"

namespace outrigger::gpu_server {
namespace {

TEST_F(ServerFeedTest, DropsWhatArrivesWhileItsSessionsAreEnded) {
  auto feed = make();
  PlayedWorker first;
  PlayedWorker second;
  for (PlayedWorker* worker : {&first, &second}) {
    feed->serve(worker->server_end());
    worker->introduce();
    worker->until_heard();
  }
  ASSERT_EQ(feed->snapshot().workers, 2U);
  first.seen().on_close = [&] {
    second.say(feed::Pull{1});
    second.until_heard();
  };
  feed.reset();
  EXPECT_FALSE(first.seen().on_close) << "the session was ended";
}

TEST_F(ServerFeedTest, LosesAWorkerThatCannotBeSentWhatItNeeds) {
  PlayedWorker worker({.max_frame_bytes = 4096});
  const auto feed = make({.numerics = "any"});
  feed->serve(worker.server_end());
  worker.introduce({.name = "w", .version = OUTRIGGER_VERSION, .numerics = "any", .memory = 1});
  worker.until_heard();
  const auto large = std::make_shared<const std::vector<float>>(4096);
  feed->begin_scoring({.dataset = &dataset_, .parameters = large, .buffers = large});
  EXPECT_THAT(worker.hear_the_end(), testing::HasSubstr("4096"));
  until_joined(*feed, 0);
  EXPECT_FALSE(feed->wait_for_scores()) << "nobody is left to make them";
}

TEST_F(ServerFeedTest, KnowsAWorkerByANameThatFilesCanHold) {
  PlayedWorker worker;
  const auto feed = make();
  feed->serve(worker.server_end());
  worker.introduce({.name = "caf\xe9", .version = OUTRIGGER_VERSION});
  worker.until_heard();
  EXPECT_THAT(feed->snapshot().worker_names, testing::ElementsAre("caf\uFFFD (a test)"));
  EXPECT_THAT(trace_.json(), testing::HasSubstr("caf\uFFFD"));
}

}  // namespace
}  // namespace outrigger::gpu_server
