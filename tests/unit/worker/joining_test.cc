#include "worker/joining.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "common/error.h"
#include "common/file.h"
#include "transport/endpoint.h"
#include "transport/memory_link.h"

namespace outrigger::worker {
namespace {

TEST(Joining, EndsWhenAskedToStopThoughTheServerSaysNothing) {
  const TemporaryDirectory folder;
  transport::Listener listener({"127.0.0.1", 0}, "secret");
  api::Launch launch{.role = api::Role::kWorker};
  launch.server = "127.0.0.1:" + std::to_string(listener.port());
  launch.token_file = folder.path() / "token";
  write_file_atomically(launch.token_file, "secret");
  std::stop_source stop;
  auto joined = std::async(std::launch::async, [&] { return join(launch, stop.get_token()); });
  const auto link = listener.accept(std::chrono::seconds(60));
  ASSERT_NE(link, nullptr);
  stop.request_stop();
  EXPECT_THROW(joined.get(), Cancelled);
}

TEST(Joining, HearsAFarewellThatItsAnswerComesTooLateFor) {
  const auto ends = transport::make_memory_links();
  ends.first->send(to_frame(feed::ServerMessage(feed::Farewell{false, "all is done"}), {}));
  ends.first->close("the work is over");
  const auto farewell = answer(*ends.second, {.name = "late"});
  ASSERT_TRUE(farewell);
  EXPECT_EQ(farewell->reason, "all is done");
}

TEST(Joining, SaysThatTheLinkIsOverWhereTheServerLeftNoFarewell) {
  const auto ends = transport::make_memory_links();
  ends.first->send(to_frame(feed::ServerMessage(feed::Committed{1, 1}), {}));
  ends.first->close("gone");
  EXPECT_THROW(answer(*ends.second, {}), transport::LinkClosed);
}

TEST(Joining, AnswersAServerThatListens) {
  const auto ends = transport::make_memory_links();
  EXPECT_FALSE(answer(*ends.second, {.name = "in time"}));
  const auto frame = ends.first->receive(Duration{0});
  ASSERT_TRUE(frame);
  EXPECT_EQ(read_hello(*frame).name, "in time");
}

}  // namespace
}  // namespace outrigger::worker
