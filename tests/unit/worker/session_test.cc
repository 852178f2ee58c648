#include "worker/session.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

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

/// What it shows once it no longer changes.
uint64_t settled(const std::atomic<uint64_t>& turns) {
  for (;;) {
    const uint64_t shown = turns;
    std::this_thread::sleep_for(milliseconds(50));
    if (turns == shown) return shown;
  }
}

TEST(Session, ShowsWhetherItIsAtWorkOrWaits) {
  const nn::Graph graph = one_pixel_graph();
  const auto backend = nn::make_reference_backend();
  ThreadPool threads(1);
  HeldPixels pixels;
  Agent agent({.leases = 1}, graph, *backend, threads, pixels);
  telemetry::Metrics metrics;
  SessionCounters counters(metrics);
  const auto ends = transport::make_memory_links();
  const std::jthread session([&](const std::stop_token& stop) {
    EXPECT_EQ(run_session(*ends.second, agent, {}, counters, stop).end, SessionEnd::kFinished);
  });
  const uint64_t before = settled(counters.turns);
  EXPECT_EQ(before % 2, 0U) << "it waits";
  feed::Lease lease{.kind = feed::WorkKind::kForward};
  lease.samples.push_back({0, 0, {"image", 0, 0, 1}});
  ends.first->send(to_frame(feed::ServerMessage(lease), {}));
  pixels.begun.get_future().wait();
  const uint64_t during = settled(counters.turns);
  EXPECT_EQ(during % 2, 1U) << "it is at work";
  EXPECT_GT(during, before);
  pixels.may_end.set_value();
  EXPECT_EQ(settled(counters.turns) % 2, 0U);
  ends.first->send(to_frame(feed::ServerMessage(feed::Farewell{false, "done"}), {}));
}

}  // namespace
}  // namespace outrigger::worker
