// What every Link promises of frames that it delivers: see link_conformance_test.cc.
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "known_failures.h"
#include "link_pairs.h"
#include "transport/internal/inbox.h"

namespace outrigger::transport {
namespace {

using std::chrono::seconds;

class LinkDeliveryTest : public testing::TestWithParam<Carrier> {};

/// Types of the frames that a delivery took, until it is stopped.
class Delivered {
 public:
  void take(const ReceivedFrame& frame) {
    const std::scoped_lock lock(mutex_);
    types_.push_back(frame.type);
  }
  size_t count() {
    const std::scoped_lock lock(mutex_);
    return types_.size();
  }
  bool come(size_t count) {
    const TimePoint limit = system_now() + seconds(10);
    while (this->count() < count && system_now() < limit) std::this_thread::yield();
    return this->count() == count;
  }
  bool in_order() {
    const std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < types_.size(); ++i)
      if (types_[i] != i) return false;
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<uint16_t> types_;
};

TEST_P(LinkDeliveryTest, DeliversWhatWaitsAndWhatComesAndNothingOnceItIsStopped) {
  const LinkPair pair = connect(GetParam());
  Delivered delivered;
  std::stop_source stop;
  for (uint16_t i = 0; i < 20; ++i) pair.worker->send(frame_of(i, {}, {Bytes(i * 1000U)}));
  std::thread delivery([&] {
    pair.server->deliver([&](const ReceivedFrame& frame) { delivered.take(frame); },
                         stop.get_token());
  });
  for (uint16_t i = 20; i < 200; ++i) pair.worker->send(frame_of(i, {}, {Bytes(i * 100U)}));
  EXPECT_TRUE(delivered.come(200));
  EXPECT_TRUE(delivered.in_order());
  stop.request_stop();
  delivery.join();
  pair.worker->send(frame_of(200));
  EXPECT_EQ(receive_one(*pair.server).type, 200) << "whoever asks gets it again";
  EXPECT_EQ(delivered.count(), 200U);
  EXPECT_EQ(pair.server->stats().frames_received, 201U);
}

TEST_P(LinkDeliveryTest, ADeliveryGivesRoomForMore) {
  const LinkOptions options = quick_options();
  const LinkPair pair = connect(GetParam(), options);
  Delivered delivered;
  std::stop_source stop;
  std::thread delivery([&] {
    pair.server->deliver([&](const ReceivedFrame& frame) { delivered.take(frame); },
                         stop.get_token());
  });
  const size_t size = options.window_bytes / 3;
  for (uint16_t i = 0; i < 20; ++i) pair.worker->send(frame_of(i, {}, {Bytes(size)}));
  EXPECT_TRUE(delivered.come(20));
  stop.request_stop();
  delivery.join();
}

TEST_P(LinkDeliveryTest, ADeliveryEndsWithWhatItsTakerThrows) {
  const LinkPair pair = connect(GetParam());
  pair.worker->send(frame_of(0));
  pair.worker->send(frame_of(1));
  const auto take = [](const ReceivedFrame& frame) {
    if (frame.type == 1) throw InvalidInput("nonsense");
  };
  EXPECT_THROW(pair.server->deliver(take, {}), InvalidInput);
  pair.worker->send(frame_of(1));
  EXPECT_THROW(pair.server->deliver(take, {}), InvalidInput) << "the link is as it was";
}

TEST_P(LinkDeliveryTest, ADeliveryEndsWithTheLink) {
  for (const bool by_us : {true, false}) {
    const LinkPair pair = connect(GetParam());
    Delivered delivered;
    auto delivery = std::async(std::launch::async, [&] {
      pair.server->deliver([&](const ReceivedFrame& frame) { delivered.take(frame); }, {});
    });
    pair.worker->send(frame_of(0));
    ASSERT_TRUE(delivered.come(1));
    (by_us ? pair.server : pair.worker)->close("the test ends");
    if (by_us) {
      EXPECT_THROW(delivery.get(), Cancelled);
    } else {
      EXPECT_THROW(delivery.get(), LinkClosed);
    }
  }
}

TEST(InboxTest, HandsOutWhatArrivedBeforeTheEndBeforeItDelivers) {
  Inbox inbox(quick_options());
  ASSERT_TRUE(inbox.try_reserve(Lane::kData, 0));
  EXPECT_FALSE(inbox.push({.type = 7}, 0, system_now()));
  inbox.end({.by_us = false, .reason = "the peer is gone"});
  const auto never = [](const ReceivedFrame&) { FAIL(); };
  EXPECT_FALSE(inbox.deliver(never, {}));
  EXPECT_EQ(inbox.take(Duration{0}).value().frame.type, 7);
  EXPECT_THROW(static_cast<void>(inbox.deliver(never, {})), LinkClosed);
}

INSTANTIATE_TEST_SUITE_P(Every, LinkDeliveryTest, testing::ValuesIn(carriers()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace outrigger::transport
