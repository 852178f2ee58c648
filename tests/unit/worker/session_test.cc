#include "worker/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "common/error.h"
#include "nn/graph_builder.h"
#include "nn/reference/backend.h"
#include "transport/memory_link.h"

namespace outrigger::worker {
namespace {

using std::chrono::milliseconds;

nn::Graph one_pixel_graph() {
  nn::GraphBuilder builder("one-pixel", {1, 1, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 2});
  return builder.build();
}

/// Pixels that are made when the test lets them.
class HeldPixels final : public PixelSource {
 public:
  Duration make(const feed::LeaseSample& /*sample*/, bool /*evaluation*/,
                std::span<std::byte> /*pixels*/) override {
    begun.set_value();
    may_end.get_future().wait();
    return Duration{0};
  }
  std::promise<void> begun;
  std::promise<void> may_end;
};

class MissingPixels final : public PixelSource {
 public:
  Duration make(const feed::LeaseSample& /*sample*/, bool /*evaluation*/,
                std::span<std::byte> /*pixels*/) override {
    throw IoError("cannot open faces/1.jpg");
  }
};

class ReadyPixels final : public PixelSource {
 public:
  Duration make(const feed::LeaseSample& /*sample*/, bool /*evaluation*/,
                std::span<std::byte> /*pixels*/) override {
    return Duration{0};
  }
};

/// Once it waits, and has waited for a while.
uint64_t until_it_waits(const std::atomic<uint64_t>& turns) {
  for (;;) {
    const uint64_t shown = turns;
    std::this_thread::sleep_for(milliseconds(50));
    if (shown % 2 == 0 && turns == shown) return shown;
  }
}

class SessionTest : public testing::Test {
 protected:
  const nn::Graph graph_ = one_pixel_graph();
  const std::unique_ptr<nn::Backend> backend_ = nn::make_reference_backend();
  ThreadPool threads_{1};
  HeldPixels pixels_;
  telemetry::Metrics metrics_;
  SessionCounters counters_{metrics_};
};

TEST_F(SessionTest, ShowsWhetherItIsAtWorkOrWaits) {
  Agent agent({.leases = 1}, graph_, *backend_, threads_, pixels_);
  const auto ends = transport::make_memory_links();
  std::jthread session([&](const std::stop_token& stop) {
    EXPECT_EQ(run_session(*ends.second, agent, {}, counters_, stop).end, SessionEnd::kFinished);
  });
  const uint64_t before = until_it_waits(counters_.turns);
  feed::Lease lease{.kind = feed::WorkKind::kForward};
  lease.samples.push_back({0, 0, {"image", 0, 0, 1}});
  ends.first->send(to_frame(feed::ServerMessage(lease), {}));
  pixels_.begun.get_future().wait();
  const uint64_t during = counters_.turns;
  EXPECT_EQ(during % 2, 1U) << "it is at work";
  EXPECT_GT(during, before);
  pixels_.may_end.set_value();
  EXPECT_GT(until_it_waits(counters_.turns), during);
  ends.first->send(to_frame(feed::ServerMessage(feed::Farewell{false, "done"}), {}));
  session.join();
}

TEST_F(SessionTest, SendsWhatItHasMadeBeforeItLeaves) {
  Agent agent({.leases = 1}, graph_, *backend_, threads_, pixels_);
  const auto ends = transport::make_memory_links();
  std::jthread session([&](const std::stop_token& stop) {
    EXPECT_EQ(run_session(*ends.second, agent, {}, counters_, stop).end, SessionEnd::kStopped);
  });
  feed::Lease lease{.kind = feed::WorkKind::kForward};
  lease.samples.push_back({0, 0, {"image", 0, 0, 1}});
  ends.first->send(to_frame(feed::ServerMessage(lease), {}));
  pixels_.begun.get_future().wait();
  session.request_stop();
  pixels_.may_end.set_value();
  std::vector<uint16_t> heard;
  while (heard.empty() || heard.back() != static_cast<uint16_t>(FrameType::kLeaving)) {
    const auto frame = ends.first->receive(std::chrono::seconds(60));
    ASSERT_TRUE(frame);
    heard.push_back(frame->type);
  }
  EXPECT_THAT(heard, testing::Contains(static_cast<uint16_t>(FrameType::kMicroBatch)));
}

TEST_F(SessionTest, SendsWhatThreadsOfThePoolHaveDecodedWhileItWaitsForMessages) {
  ReadyPixels pixels;
  ThreadPool threads(3);
  Agent agent({.leases = 4}, graph_, *backend_, threads, pixels);
  const auto ends = transport::make_memory_links();
  std::jthread session([&](const std::stop_token& stop) {
    static_cast<void>(run_session(*ends.second, agent, {}, counters_, stop));
  });
  constexpr uint64_t kLeases = 100;
  for (uint64_t step = 0; step < kLeases; ++step) {
    feed::Lease lease{.key = {.step = step}, .kind = feed::WorkKind::kForward};
    for (uint64_t i = 0; i < 5; ++i) lease.samples.push_back({i, 0, {"image", 0, 0, 1}});
    ends.first->send(to_frame(feed::ServerMessage(lease), {}));
  }
  uint64_t batches = 0;
  while (batches < kLeases) {
    const auto frame = ends.first->receive(std::chrono::seconds(60));
    ASSERT_TRUE(frame);
    if (frame->type == static_cast<uint16_t>(FrameType::kMicroBatch)) ++batches;
  }
  EXPECT_EQ(counters_.micro_batches.value(), kLeases);
}

TEST_F(SessionTest, TellsTheLogWhatCouldNotBeReadAndNotForEveryLease) {
  MissingPixels pixels;
  Agent agent({.leases = 2}, graph_, *backend_, threads_, pixels);
  const auto ends = transport::make_memory_links();
  testing::internal::CaptureStderr();
  std::jthread session([&](const std::stop_token& stop) {
    static_cast<void>(run_session(*ends.second, agent, {}, counters_, stop));
  });
  for (uint64_t step = 0; step < 2; ++step) {
    feed::Lease lease{.key = {.step = step}, .kind = feed::WorkKind::kForward};
    lease.samples.push_back({step, 0, {"faces/1.jpg", 0, 0, 1}});
    ends.first->send(to_frame(feed::ServerMessage(lease), {}));
    auto frame = ends.first->receive(std::chrono::seconds(60));
    while (frame && frame->type != static_cast<uint16_t>(FrameType::kReadFailed))
      frame = ends.first->receive(std::chrono::seconds(60));
  }
  ends.first->send(to_frame(feed::ServerMessage(feed::Farewell{false, "done"}), {}));
  session.join();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(counters_.failed_reads.value(), 2);
  EXPECT_THAT(said, testing::HasSubstr("a read failed: cannot open faces/1.jpg"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1);
}

TEST_F(SessionTest, HearsARefusalThatItsOwnFirstWordsCameTooLateFor) {
  Agent agent({.leases = 1}, graph_, *backend_, threads_, pixels_);
  const auto ends = transport::make_memory_links();
  ends.first->send(to_frame(feed::ServerMessage(feed::Farewell{false, "other data", true}), {}));
  ends.first->close("other data");
  const SessionResult result = run_session(*ends.second, agent, {}, counters_, {});
  EXPECT_EQ(result.end, SessionEnd::kRefused) << result.reason;
}

TEST_F(SessionTest, TellsARefusalFromTheEndOfTheWorkAndWhetherItHadAny) {
  const auto hear = [&](const std::vector<feed::ServerMessage>& messages) {
    Agent agent({.leases = 1}, graph_, *backend_, threads_, pixels_);
    const auto ends = transport::make_memory_links();
    for (const auto& message : messages) ends.first->send(to_frame(message, {}));
    return run_session(*ends.second, agent, {}, counters_, {});
  };
  const SessionResult refused = hear({feed::Farewell{false, "other data", true}});
  EXPECT_EQ(refused.end, SessionEnd::kRefused);
  EXPECT_EQ(refused.reason, "other data");
  EXPECT_FALSE(refused.had_work);
  feed::Lease lease{.kind = feed::WorkKind::kForward};
  lease.samples.push_back({0, 0, {"image", 0, 0, 1}});
  pixels_.may_end.set_value();
  const SessionResult over = hear({lease, feed::Farewell{true, "restarting"}});
  EXPECT_EQ(over.end, SessionEnd::kAgain);
  EXPECT_TRUE(over.had_work);
}

}  // namespace
}  // namespace outrigger::worker
