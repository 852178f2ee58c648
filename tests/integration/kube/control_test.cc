// Informer, leader election and events against a real API server.
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "kube/cache/informer.h"
#include "kube/control/events.h"
#include "kube/control/leader_election.h"
#include "tests/integration/kube/real_cluster.h"

namespace outrigger::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

class RealControl : public RealCluster {
 protected:
  template <typename Condition>
  static bool wait_for(const Condition& condition) {
    const auto deadline = Steady::now() + seconds(30);
    while (!condition()) {
      if (Steady::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }
};

TEST_F(RealControl, AnInformerFollowsThroughManyShortWatches) {
  InformerOptions<std::string> options;
  options.source.resource = kConfigMaps;
  options.source.selection = {.ns = ns_, .labels = "app=test"};
  options.source.chunk = 2;
  options.source.shortest_watch = options.source.longest_watch = seconds(1);
  options.keep = [](const Json& object) { return object.value("/data/a"_json_pointer, ""); };
  Informer<std::string> informer(*client_, std::move(options));
  std::atomic<int> told = 0;
  informer.on_change([&](const auto&, const auto&) { ++told; });
  for (const char* name : {"a", "b", "c"}) make(name);
  informer.start();
  ASSERT_TRUE(informer.wait_for_sync({}));
  EXPECT_EQ(informer.store().size(), 3u);
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(client_->patch(kConfigMaps, key("a"), PatchType::kMerge,
                               {{"data", {{"a", std::to_string(i)}}}}));
    std::this_thread::sleep_for(milliseconds(100));
  }
  ASSERT_TRUE(client_->remove(kConfigMaps, key("b")));
  EXPECT_TRUE(wait_for([&] { return informer.store().size() == 2; }));
  EXPECT_TRUE(wait_for([&] { return informer.store().get(key("a"))->value == "29"; }));
  // Three that were there, thirty patches of which the first changes as well, one deletion.
  EXPECT_EQ(told, 3 + 30 + 1);
}

TEST_F(RealControl, AStoppedLeaderIsFollowedWithinThreeSeconds) {
  std::atomic<bool> leads[2] = {false, false};
  const auto run = [&](const std::stop_token& stop, int index) {
    LeaderElection election(config_, {.lease = key("operator"), .identity = std::to_string(index)});
    LeaderElection::Callbacks callbacks;
    callbacks.lead = [&leads, index](const std::stop_token&) { leads[index] = true; };
    EXPECT_EQ(election.run(stop, callbacks), LeaderElection::Outcome::kStopped);
  };
  std::jthread first([&](const std::stop_token& stop) { run(stop, 0); });
  ASSERT_TRUE(wait_for([&] { return leads[0].load(); }));
  std::jthread second([&](const std::stop_token& stop) { run(stop, 1); });
  std::this_thread::sleep_for(seconds(3));
  EXPECT_FALSE(leads[1]);
  const auto stopped = Steady::now();
  first = {};
  ASSERT_TRUE(wait_for([&] { return leads[1].load(); }));
  EXPECT_LT(Steady::now() - stopped, seconds(3));
  const LeaseRecord lease = read_lease(client_->get(kLeases, key("operator")).take());
  EXPECT_EQ(lease.holder, "1");
  EXPECT_EQ(lease.transitions, 1);
}

TEST_F(RealControl, EventsAreTakenAndBecomeASeries) {
  const Json object = make("a");
  EventRecorder recorder(*client_, {.controller = "outrigger.dev/test", .instance = "test-1"});
  const EventSubject subject{"v1", "ConfigMap", key("a"), uid_of(object)};
  const Event event{EventType::kWarning, "Tested", "Test", "a note"};
  const auto in_ten_seconds = [] { return Timer::system().now() + seconds(10); };
  recorder.record(subject, event);
  ASSERT_TRUE(recorder.flush(in_ten_seconds()));
  recorder.record(subject, event);
  ASSERT_TRUE(recorder.flush(in_ten_seconds()));
  const auto events = client_->list(kEvents, {.ns = ns_}).take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].at("reason"), "Tested");
  EXPECT_EQ(events[0].at("series").at("count"), 2);
  EXPECT_EQ(events[0].at("regarding").at("name"), "a");
}

}  // namespace
}  // namespace outrigger::kube
