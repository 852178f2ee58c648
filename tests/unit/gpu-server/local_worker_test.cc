#include "gpu-server/links/local_worker.h"

#include <gtest/gtest.h>

#include <new>

#include "nn/cpu/backend.h"
#include "nn/models.h"
#include "tests/unit/gpu-server/server_feed_fixture.h"

namespace outrigger::gpu_server {
namespace {

/// Has no memory for any image.
class NoPixels final : public worker::PixelSource {
 public:
  Duration make(const feed::LeaseSample& /*sample*/, bool /*evaluation*/,
                std::span<std::byte> /*pixels*/) override {
    throw std::bad_alloc();
  }
};

class LocalWorkerTest : public ServerFeedTest {
 protected:
  /// Serves its own worker, which ends at its first lease.
  std::unique_ptr<LocalWorker> serve_failing(ServerFeed& feed) {
    auto local = std::make_unique<LocalWorker>(worker::AgentOptions{.leases = 2, .micro_batch = 2},
                                               graph_, *backend_, 1, pixels_, worker::WireContext{},
                                               metrics_, [this, &feed](std::exception_ptr failure) {
                                                 feed.fail_local(std::move(failure));
                                                 failed_ = true;
                                               });
    feed.serve_local(local->take_server_end(), local->processor_clock());
    return local;
  }

  const nn::Graph graph_ =
      nn::build_model({.name = "lenet5", .height = 28, .width = 28, .channels = 1, .classes = 2});
  const std::unique_ptr<nn::Backend> backend_ = nn::cpu::make_cpu_backend();
  NoPixels pixels_;
  telemetry::Metrics metrics_;
  std::atomic<bool> failed_ = false;
};

TEST_F(LocalWorkerTest, EndsTheWaitWithItsFailureWhereNobodyElseIsLeft) {
  const auto feed = make();
  const auto local = serve_failing(*feed);
  EXPECT_THROW(feed->take(0, 0), std::bad_alloc);
}

TEST_F(LocalWorkerTest, LeavesItsWorkToTheOthers) {
  const Shape shape{28, 28, 1};
  const auto feed = make({.crossings = {{0, {ElementType::kUint8, shape}}}});
  const auto local = serve_failing(*feed);
  ASSERT_TRUE(testing_support::comes_true([this] { return failed_.load(); }));
  PlayedWorker other;
  feed->serve(other.server_end());
  other.introduce();
  until_joined(*feed, 1);
  other.say(feed::Pull{1});
  const auto lease = std::get<feed::Lease>(other.hear());
  other.say(feed::MicroBatch{
      .key = lease.key,
      .tensor = std::make_shared<const Tensor>(ElementType::kUint8, Shape{2, 28, 28, 1})});
  EXPECT_NO_THROW(feed->take(lease.key.step, lease.key.index));
}

}  // namespace
}  // namespace outrigger::gpu_server
