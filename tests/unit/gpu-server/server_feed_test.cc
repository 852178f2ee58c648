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

}  // namespace
}  // namespace outrigger::gpu_server
