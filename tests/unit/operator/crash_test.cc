#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

/// Lets the operator die between any two of its actions, again and again, while the cluster does
/// what clusters do.
class Storm {
 public:
  explicit Storm(uint32_t seed)
      : world_(
            "  server: {replicas: 2}\n  workers: {replicas: 3}\n"
            "  failurePolicy: {maxRestarts: 1000}\n"),
        random_(seed) {}

  void run(int rounds) {
    for (int crash = 0; crash < 6; ++crash) die_in_a_pass();  // from the first on
    settle();
    for (int round = 0; round < rounds && !testing::Test::HasFatalFailure(); ++round) {
      const uint32_t what = draw(8);
      provoke(what);
      ++provoked_[what];
      for (int crash = 0; crash < 6; ++crash) die_in_a_pass();
      settle();
      ASSERT_EQ(world_.status().restarts, counted_) << "round " << round << ", event " << what;
    }
  }
  const std::map<uint32_t, int>& provoked() const { return provoked_; }
  int torn_passes() const { return torn_; }

 private:
  uint32_t draw(uint32_t below) { return random_() % below; }

  std::string any(const std::string& role) {
    const auto names = world_.living(role);
    return names.empty() ? "" : names[draw(static_cast<uint32_t>(names.size()))];
  }

  void provoke(uint32_t what) {
    const std::string server = any("server");
    const std::string worker = any("worker");
    if (what == 0 && !server.empty()) {
      world_.end(server, {22});
      ++counted_;
    } else if (what == 1 && !server.empty()) {
      world_.add_condition(server, {{"type", "DisruptionTarget"}, {"status", "True"}});
      world_.ask_to_delete(server);
    } else if (what == 2 && !server.empty()) {
      world_.vanish(server);
    } else if (what == 3 && !worker.empty()) {
      world_.end(worker, {1});
    } else if (what == 4 && !worker.empty()) {
      world_.vanish(worker);
    } else if (what == 5) {
      world_.spec().workers.replicas = static_cast<int>(draw(5));
    } else if (what == 6) {
      world_.spec().suspend = true;
      for (int i = 0; i < 4; ++i) {
        die_in_a_pass();
        world_.settle();
        world_.finish_deletions();
      }
      world_.spec().suspend = false;
    } else if (what == 7 && world_.living("server").size() == 2) {
      for (const std::string& name : world_.living("server")) world_.end(name, {1});
      ++counted_;
    }
  }

  // The operator plans, carries out some of its actions, and dies: often before it has written the
  // status. What it knew in its memory is gone.
  void die_in_a_pass() {
    const Plan plan = world_.look();
    const auto size = static_cast<uint32_t>(plan.actions.size());
    const uint32_t done = draw(size + 1);
    world_.carry_out(plan, done);
    if (done == size && draw(2) == 0) {
      world_.write_status(plan);
    } else {
      ++torn_;
    }
    world_.secret_made.reset();
    check();
    if (draw(3) == 0) world_.finish_deletions();
    world_.advance(seconds(draw(4)));
  }

  void settle() {
    for (int i = 0; i < 8; ++i) {
      world_.finish_deletions();
      world_.settle();
      check();
      world_.run_all();
      world_.advance(seconds(11));
    }
    world_.settle();
    ASSERT_EQ(world_.living("server").size(), 2U);
    ASSERT_EQ(world_.status().state, "Running");
  }

  void check() {
    EXPECT_EQ(world_.already_exists, 0);
    std::set<std::string> places;
    for (const char* role : {"server", "worker"}) {
      for (const std::string& name : world_.living(role)) {
        const std::string place = name.substr(0, name.rfind('-'));
        EXPECT_TRUE(places.insert(place).second) << "two living pods for " << place;
      }
    }
  }

  World world_;
  std::mt19937 random_;
  int counted_ = 0;
  int torn_ = 0;
  std::map<uint32_t, int> provoked_;
};

TEST(Crash, WheneverTheOperatorDiesNoPodIsDoubledAndEveryRestartCountsOnce) {
  std::map<uint32_t, int> provoked;
  int torn = 0;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Storm storm(seed);
    storm.run(12);
    if (HasFatalFailure()) return;
    for (const auto& [what, count] : storm.provoked()) provoked[what] += count;
    torn += storm.torn_passes();
  }
  EXPECT_EQ(provoked.size(), 8U) << "every kind of event was provoked";
  EXPECT_GT(torn, 200);
}

TEST(Crash, APassRepeatedBeforeItsStatusIsWrittenAsksForTheSame) {
  World world("  workers: {replicas: 3}\n");
  world.pass();
  const Plan once = world.look();
  const Plan twice = world.look();
  ASSERT_EQ(once.actions.size(), twice.actions.size());
  for (size_t i = 0; i < once.actions.size(); ++i) {
    EXPECT_EQ(std::get<Create>(once.actions[i]).text, std::get<Create>(twice.actions[i]).text);
  }
}

}  // namespace
}  // namespace outrigger::controller
