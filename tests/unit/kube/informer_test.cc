#include "kube/cache/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kube/cache/reflector.h"
#include "tests/fakes/api_server.h"
#include "tests/fakes/fake_timer.h"

namespace outrigger::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Resource kPods{"", "v1", "pods", "Pod"};
constexpr seconds kPatience{20};

// What the tests keep of a pod.
struct Pod {
  std::string node;
  std::string phase;
};

Pod keep_pod(const Json& object) {
  return {object.value("/spec/nodeName"_json_pointer, ""),
          object.value("/status/phase"_json_pointer, "")};
}

Json pod(const std::string& name, const std::string& node = "one") {
  return {{"metadata", {{"name", name}, {"namespace", "team"}, {"labels", {{"app", "faces"}}}}},
          {"spec", {{"nodeName", node}}}};
}

class InformerTest : public testing::Test {
 protected:
  InformerTest() { follow(options()); }
  ~InformerTest() override { informer_->stop(); }

  static InformerOptions<Pod> options() {
    InformerOptions<Pod> options;
    options.source.resource = kPods;
    options.source.selection.labels = "app=faces";
    options.source.chunk = 2;
    options.source.back_off = {milliseconds(5), milliseconds(50)};
    options.keep = keep_pod;
    options.indexers["node"] = [](const Cached<Pod>& object) {
      return std::vector<std::string>{object.value.node};
    };
    return options;
  }
  void follow(InformerOptions<Pod> options) {
    informer_.emplace(client_, std::move(options));
    informer_->on_change([this](const CachedPtr<Pod>& before, const CachedPtr<Pod>& after) {
      const std::scoped_lock lock(mutex_);
      const std::string name = (after ? after : before)->key.name;
      told_.push_back((!before ? "+" : !after ? "-" : "~") + name);
      changed_.notify_all();
    });
  }

  void start() {
    informer_->start();
    ASSERT_TRUE(informer_->wait_for_sync({}));
  }
  void start_watching() {
    start();
    ASSERT_TRUE(server_.wait_for_watches(1));
  }
  Json make(const std::string& name) { return client_.create(kPods, pod(name)).take(); }
  void remove(const std::string& name) { ASSERT_TRUE(client_.remove(kPods, {"team", name})); }
  void set_phase(const std::string& name, const std::string& phase) {
    ASSERT_TRUE(
        client_.patch(kPods, {"team", name}, PatchType::kMerge, {{"status", {{"phase", phase}}}}));
  }

  // What has been told once the last of it is `last`.
  std::vector<std::string> told_until(const std::string& last) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, kPatience, [&] { return !told_.empty() && told_.back() == last; }))
        << "never told: " << last;
    return std::exchange(told_, {});
  }
  // Once so much has been told that it holds; under the lock of what is told.
  bool wait_until(const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, holds);
  }
  std::string phase_of(const std::string& name) {
    return informer_->store().get({"team", name})->value.phase;
  }
  std::vector<std::string> cached() {
    std::vector<std::string> names;
    for (const auto& object : informer_->store().list()) names.push_back(object->key.name);
    return names;
  }
  static std::string event(const char* type, const Json& object) {
    return Json{{"type", type}, {"object", object}}.dump() + "\n";
  }

  fakes::ApiServer server_;
  Client client_{server_.config()};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> told_;
  std::optional<Informer<Pod>> informer_;
};

TEST_F(InformerTest, ListsInChunksAndThenFollows) {
  for (const char* name : {"a", "b", "c"}) make(name);
  EXPECT_FALSE(informer_->has_synced());
  start();
  EXPECT_THAT(cached(), UnorderedElementsAre("a", "b", "c"));
  EXPECT_THAT(told_until("+c"), ElementsAre("+a", "+b", "+c"));
  make("d");
  told_until("+d");
  set_phase("d", "Running");
  told_until("~d");
  EXPECT_EQ(informer_->store().get({"team", "d"})->value.phase, "Running");
  remove("d");
  told_until("-d");
  EXPECT_EQ(informer_->store().get({"team", "d"}), nullptr);
}

TEST_F(InformerTest, AnEmptyListIsSyncedToo) {
  start();
  EXPECT_TRUE(informer_->has_synced());
  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(InformerTest, WhatTheSelectorLeavesOutIsNotSeenAndWhatItLosesIsDeleted) {
  ASSERT_TRUE(client_.create(kPods, {{"metadata", {{"name", "x"}, {"namespace", "team"}}}}));
  make("a");
  start_watching();
  EXPECT_THAT(cached(), ElementsAre("a"));
  ASSERT_TRUE(client_.patch(kPods, {"team", "a"}, PatchType::kMerge,
                            {{"metadata", {{"labels", {{"app", "other"}}}}}}));
  EXPECT_THAT(told_until("-a"), ElementsAre("+a", "-a"));
}

TEST_F(InformerTest, ObjectsAreFoundByTheirIndexes) {
  make("a");
  ASSERT_TRUE(client_.create(kPods, pod("b", "two")));
  start_watching();
  const auto on = [&](const std::string& node) {
    std::vector<std::string> names;
    for (const auto& object : informer_->store().by_index("node", node))
      names.push_back(object->key.name);
    return names;
  };
  EXPECT_THAT(on("one"), ElementsAre("a"));
  EXPECT_THAT(on("three"), IsEmpty());
  ASSERT_TRUE(
      client_.patch(kPods, {"team", "a"}, PatchType::kMerge, {{"spec", {{"nodeName", "two"}}}}));
  told_until("~a");
  EXPECT_THAT(on("one"), IsEmpty());
  EXPECT_THAT(on("two"), ElementsAre("a", "b"));
  remove("b");
  told_until("-b");
  EXPECT_THAT(on("two"), ElementsAre("a"));
}

TEST_F(InformerTest, ADroppedWatchGoesOnWhereItWas) {
  start_watching();
  make("a");
  told_until("+a");
  server_.break_watches();
  make("b");
  set_phase("b", "Running");
  EXPECT_THAT(told_until("~b"), ElementsAre("+b", "~b"));
  EXPECT_EQ(server_.requests("limit=").size(), 1u) << "a second list was not needed";
}

TEST_F(InformerTest, ADeletionMissedMeanwhileIsMadeUpByTheNextList) {
  for (const char* name : {"a", "b", "c"}) make(name);
  start_watching();
  told_until("+c");
  server_.stop();
  server_.store().remove(*fakes::ApiPath::parse("/api/v1/namespaces/team/pods/b"), Json::object());
  // Its history is gone: the watch cannot go on, and nobody will ever tell of the deletion.
  server_.store().compact();
  server_.start();
  told_until("-b");
  EXPECT_THAT(cached(), UnorderedElementsAre("a", "c"));
}

TEST_F(InformerTest, ASuccessorOfTheSameNameIsANewObject) {
  make("a");
  start_watching();
  const std::string first = informer_->store().get({"team", "a"})->uid;
  told_until("+a");
  server_.silence_watches();
  remove("a");
  make("a");
  server_.store().compact();
  server_.break_watches();
  EXPECT_THAT(told_until("+a"), ElementsAre("-a", "+a"));
  EXPECT_NE(informer_->store().get({"team", "a"})->uid, first);
}

TEST_F(InformerTest, AHalfOpenConnectionIsNoticed) {
  InformerOptions<Pod> impatient = options();
  impatient.source.silence = milliseconds(1000);
  follow(std::move(impatient));
  start_watching();
  server_.silence_watches();
  make("a");
  EXPECT_THAT(told_until("+a"), ElementsAre("+a"));
}

TEST_F(InformerTest, AnErrorEventListsAgain) {
  start_watching();
  server_.say_to_watches(
      R"({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}})"
      "\n");
  ASSERT_TRUE(server_.wait_for_requests("limit=", 2));
  make("a");
  EXPECT_THAT(told_until("+a"), ElementsAre("+a"));
}

TEST_F(InformerTest, AListThatTellsNothingNewTellsNothing) {
  make("a");
  start_watching();
  told_until("+a");
  server_.store().compact();
  server_.break_watches();
  ASSERT_TRUE(server_.wait_for_requests("limit=", 2));
  make("b");
  EXPECT_THAT(told_until("+b"), ElementsAre("+b"));
}

TEST_F(InformerTest, WhatComesTwiceOrLateIsNotTold) {
  start_watching();
  const Json first = make("a");
  set_phase("a", "Running");
  const Json second = client_.get(kPods, {"team", "a"}).take();
  told_until("~a");
  server_.say_to_watches(event("MODIFIED", second) + event("ADDED", first) +
                         event("MODIFIED", first));
  make("b");
  EXPECT_THAT(told_until("+b"), ElementsAre("+b"));
  EXPECT_EQ(informer_->store().get({"team", "a"})->value.phase, "Running");
  remove("a");
  told_until("-a");
  server_.say_to_watches(event("MODIFIED", second) + event("DELETED", second));
  make("c");
  EXPECT_THAT(told_until("+c"), ElementsAre("+c"));
  EXPECT_EQ(informer_->store().get({"team", "a"}), nullptr);
}

TEST_F(InformerTest, WhatItsUserHasAlreadyIsTakenAsItIsAndNotRead) {
  std::atomic<int> read = 0;
  CachedPtr<Pod> own;  // set before the version that it is of is told
  InformerOptions<Pod> asking = options();
  asking.keep = [&read](const Json& object) {
    ++read;
    return keep_pod(object);
  };
  asking.known = [&own](const ObjectKey& key, const std::string& version) {
    return own && own->key == key && own->resource_version == version ? own : nullptr;
  };
  follow(std::move(asking));
  const Json made = make("a");
  start_watching();
  told_until("+a");
  Json written = made;
  written["metadata"]["resourceVersion"] = "1000000";
  written["status"] = {{"phase", "on the wire"}};
  own = std::make_shared<Cached<Pod>>(
      Cached<Pod>{{"team", "a"}, uid_of(made), "1000000", {"two", "in hand"}});
  server_.say_to_watches(event("MODIFIED", written));
  EXPECT_THAT(told_until("~a"), ElementsAre("~a"));
  EXPECT_EQ(informer_->store().get({"team", "a"}), own);
  EXPECT_THAT(informer_->store().by_index("node", "two"), ElementsAre(own));
  EXPECT_EQ(read, 1);
  // Another's is read, whole; what comes again is not told again.
  Json foreign = written;
  foreign["metadata"]["resourceVersion"] = "1000001";
  server_.say_to_watches(event("MODIFIED", written) + event("MODIFIED", foreign));
  EXPECT_THAT(told_until("~a"), ElementsAre("~a"));
  EXPECT_EQ(phase_of("a"), "on the wire");
  EXPECT_EQ(read, 2);
}

TEST_F(InformerTest, AServerRestoredFromABackupIsBelieved) {
  make("a");
  make("b");
  start_watching();
  told_until("+b");
  server_.stop();
  server_.store().rewind_versions(50);
  server_.start();
  // The list after the restart tells it as well, before or after this.
  set_phase("b", "Restored");
  EXPECT_TRUE(wait_until([&] { return phase_of("b") == "Restored"; }));
}

TEST_F(InformerTest, FailingListsAreTriedUntilOneSucceeds) {
  server_.fail("limit=", {.status = 403, .reason = "Forbidden"}, 3);
  make("a");
  start();
  EXPECT_THAT(cached(), ElementsAre("a"));
}

TEST_F(InformerTest, ARefusedWatchComesBackWithoutAList) {
  server_.fail("watch=true", {.status = 429}, 2);
  start_watching();
  make("a");
  told_until("+a");
  EXPECT_EQ(server_.requests("limit=").size(), 1u);
}

// Of a reflector whose server asks for a wait with its refusal of `request`, how long it waits
// before the next try.
Duration wait_after_refusal(fakes::ApiServer& server, const std::string& request, int seconds) {
  struct Sink final : ReflectorSink {
    void list_begins() override {}
    void list_item(Json) override {}
    void list_ends() override {}
    void change(Change) override {}
  } sink;
  const fakes::FakeTimer timer(fakes::FakeTimer::Waiting::kJump);
  Client client(server.config(), {.timer = &timer});
  const TimePoint start = timer.now();
  server.fail(request, {.status = 429, .retry_after = seconds});
  const size_t before = server.requests(request).size();
  Reflector reflector(client, {.resource = kPods});
  {
    const std::jthread running([&](const std::stop_token& stop) { reflector.run(sink, stop); });
    EXPECT_TRUE(server.wait_for_requests(request, before + 2));
  }
  return timer.now() - start;
}

TEST_F(InformerTest, TheWaitThatARefusalAsksForIsKeptWithinBounds) {
  for (const char* request : {"limit=", "watch="}) {
    const auto wait = wait_after_refusal(server_, request, 100);
    EXPECT_GE(wait, seconds(100)) << request;
    EXPECT_LT(wait, seconds(140)) << request;
    const auto longest = wait_after_refusal(server_, request, 1'000'000);
    EXPECT_GE(longest, seconds(300)) << request;
    EXPECT_LT(longest, seconds(340)) << request;
  }
}

TEST_F(InformerTest, AServerThatGoesAwayAndComesBackIsFollowed) {
  make("a");
  start_watching();
  told_until("+a");
  server_.stop();
  server_.start();
  make("b");
  EXPECT_THAT(told_until("+b"), ElementsAre("+b"));
}

TEST_F(InformerTest, AResyncTellsEverythingAgainAndLosesNoChange) {
  for (const char* name : {"a", "b"}) make(name);
  start_watching();
  told_until("+b");
  constexpr int kChanges = 30;
  // Each resync meets the change on its way. One without a pause would keep the changes waiting for
  // as long as the lock is not fair.
  for (int i = 0; i < kChanges; ++i) {
    set_phase("a", std::to_string(i));
    informer_->resync();
  }
  make("z");
  ASSERT_TRUE(
      wait_until([&] { return std::find(told_.begin(), told_.end(), "+z") != told_.end(); }));
  EXPECT_EQ(phase_of("a"), std::to_string(kChanges - 1));
  {
    const std::scoped_lock lock(mutex_);
    told_.clear();
  }
  informer_->resync();
  const std::scoped_lock lock(mutex_);
  EXPECT_THAT(told_, UnorderedElementsAre("~a", "~b", "~z"));
}

TEST_F(InformerTest, ReadersAndChangesDoNotDisturbEachOther) {
  start_watching();
  std::jthread reading([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const auto& object : informer_->store().list()) EXPECT_EQ(object->value.node, "one");
      for (const auto& object : informer_->store().by_index("node", "one"))
        EXPECT_FALSE(object->uid.empty());
    }
  });
  for (int i = 0; i < 20; ++i) make("pod-" + std::to_string(i));
  told_until("+pod-19");
  reading = {};
  EXPECT_EQ(informer_->store().size(), 20u);
}

TEST_F(InformerTest, StopsInTheMiddleOfAnything) {
  informer_->start();
  informer_->stop();
  informer_->stop();
  make("too-late");
  const std::scoped_lock lock(mutex_);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(InformerTest, StopsWhileTheServerDoesNotAnswer) {
  server_.fail("watch=true", {.hang = true});
  start();
  ASSERT_TRUE(server_.wait_for_requests("watch=true", 1));
  informer_->stop();
  server_.release_hanging();
}

}  // namespace
}  // namespace outrigger::kube
