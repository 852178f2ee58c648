#include "kube/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/error.h"
#include "common/file.h"
#include "http/client.h"
#include "kube/object/object.h"
#include "tests/fakes/api_server.h"
#include "tests/fakes/fake_timer.h"
#include "tests/fakes/resources.h"

namespace outrigger::kube {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

Json config_map(const std::string& name, const Json& labels = Json::object()) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "team"}, {"labels", labels}}},
          {"data", {{"a", "1"}}}};
}

class ClientTest : public testing::Test {
 protected:
  ClientOptions options() {
    ClientOptions options;
    options.timer = &timer_;
    options.timeout = seconds(20);
    return options;
  }
  std::vector<std::string> names(const Selection& selection, int chunk) {
    std::vector<std::string> names;
    ListReceiver receiver;
    receiver.item = [&](const Json& item) { names.push_back(name_of(item)); };
    receiver.restart = [&] { names.push_back("restart"); };
    EXPECT_TRUE(client_.list(kConfigMaps, selection, receiver, {}, chunk));
    return names;
  }
  void make(const std::vector<std::string>& names) {
    for (const auto& name : names) ASSERT_TRUE(client_.create(kConfigMaps, config_map(name)));
  }

  fakes::ApiServer server_;
  fakes::FakeTimer timer_{fakes::FakeTimer::Waiting::kJump};
  Client client_{server_.config(), options()};
  const ObjectKey a_{"team", "a"};
};

TEST_F(ClientTest, CreatesReadsUpdatesAndDeletes) {
  Json made = client_.create(kConfigMaps, config_map("a")).take();
  EXPECT_FALSE(uid_of(made).empty());
  made["data"]["a"] = "2";
  const Json updated = client_.update(kConfigMaps, made).take();
  EXPECT_TRUE(is_older_version(resource_version_of(made), resource_version_of(updated)));
  EXPECT_EQ(client_.get(kConfigMaps, a_)->at("data").at("a"), "2");
  EXPECT_TRUE(client_.remove(kConfigMaps, a_));
  const auto gone = client_.get(kConfigMaps, a_);
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().not_found());
  EXPECT_EQ(gone.error().reason(), "NotFound");
  EXPECT_THAT(gone.error().what(), HasSubstr("GET /api/v1/namespaces/team/configmaps/a: 404"));
}

TEST_F(ClientTest, ASecondCreateAlreadyExists) {
  make({"a"});
  const auto again = client_.create(kConfigMaps, config_map("a"));
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().already_exists());
}

TEST_F(ClientTest, AnUpdateOfAnOldVersionIsAConflict) {
  const Json made = client_.create(kConfigMaps, config_map("a")).take();
  ASSERT_TRUE(client_.update(kConfigMaps, made));
  const auto late = client_.update(kConfigMaps, made);
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().conflict());
}

TEST_F(ClientTest, WritesAreStrictUnlessToldOtherwise) {
  make({"a"});
  ASSERT_TRUE(client_.create(kConfigMaps, config_map("b"),
                             {.strict = false, .dry_run = true, .field_manager = "me"}));
  EXPECT_EQ(server_.requests("POST")[0].line,
            "POST /api/v1/namespaces/team/configmaps?fieldValidation=Strict");
  EXPECT_EQ(server_.requests("POST")[1].line,
            "POST /api/v1/namespaces/team/configmaps?dryRun=All&fieldManager=me");
}

TEST_F(ClientTest, PatchesOfEachKind) {
  make({"a"});
  Json merged =
      client_.patch(kConfigMaps, a_, PatchType::kMerge, {{"data", {{"b", "2"}, {"a", nullptr}}}})
          .take();
  EXPECT_EQ(merged["data"], Json({{"b", "2"}}));
  const Json add = Json::parse(R"([{"op": "add", "path": "/data/c", "value": "3"}])");
  EXPECT_EQ(client_.patch(kConfigMaps, a_, PatchType::kJson, add)->at("data").at("c"), "3");
  const auto applied = client_.patch(kConfigMaps, {"team", "new"}, PatchType::kApply,
                                     config_map("new"), {.field_manager = "me", .force = true});
  ASSERT_TRUE(applied);
  EXPECT_THAT(server_.requests("PATCH").back().line, HasSubstr("fieldManager=me&force=true"));
}

TEST_F(ClientTest, TheStatusSubresourceChangesNothingElse) {
  Json made = client_.create(kConfigMaps, config_map("a")).take();
  made["status"] = {{"phase", "Good"}};
  made["data"] = {{"a", "changed"}};
  ASSERT_TRUE(client_.update_status(kConfigMaps, made));
  const Json now = client_.get(kConfigMaps, a_).take();
  EXPECT_EQ(now["status"]["phase"], "Good");
  EXPECT_EQ(now["data"]["a"], "1");
}

TEST_F(ClientTest, MetadataAloneIsAnsweredWhereMoreIsNotWanted) {
  const Json made =
      client_.create(kConfigMaps, config_map("a"), {.answer = Form::kMetadata}).take();
  EXPECT_EQ(name_of(made), "a");
  EXPECT_FALSE(made.contains("data"));
  EXPECT_TRUE(client_.get(kConfigMaps, a_)->contains("data"));
  const auto listed = client_.list(kConfigMaps, {.ns = "team", .form = Form::kMetadata}).take();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed.front()["kind"], "ConfigMap");
  EXPECT_EQ(uid_of(listed.front()), uid_of(made));
  EXPECT_FALSE(listed.front().contains("data"));
}

TEST_F(ClientTest, OfAnAnswerThatNobodyReadsNothingIsThereButItsErrors) {
  const WriteOptions options{.answer = Form::kNothing};
  EXPECT_TRUE(client_.create(kConfigMaps, config_map("a"), options)->is_null());
  EXPECT_TRUE(client_.patch(kConfigMaps, a_, PatchType::kMerge, {{"data", {{"b", "2"}}}}, options)
                  ->is_null());
  EXPECT_EQ(client_.get(kConfigMaps, a_)->at("data").at("b"), "2");
  EXPECT_TRUE(client_.create(kConfigMaps, config_map("a"), options).error().already_exists());
}

TEST_F(ClientTest, OfAnAnswerNoMoreIsReadThanIsAskedFor) {
  const std::vector<KeptFields> version{{"metadata", {"resourceVersion"}}};
  const Json made =
      client_.create(kConfigMaps, config_map("a"), {.answer = Form::kMetadata, .kept = version})
          .take();
  EXPECT_FALSE(resource_version_of(made).empty());
  EXPECT_EQ(made["metadata"].size(), 1U);
  const Json written =
      client_.update_status(kConfigMaps, a_, to_text(config_map("a")), {.kept = version}).take();
  EXPECT_EQ(written["metadata"].size(), 1U);
  EXPECT_TRUE(is_older_version(resource_version_of(made), resource_version_of(written)));
  EXPECT_THAT(server_.requests("PUT").back().line, HasSubstr("configmaps/a/status"));
}

TEST_F(ClientTest, APathInTheServersUrlGoesInFrontOfAllOthers) {
  Config config = server_.config();
  config.server += "/k8s/c-1/";
  const auto missing = Client(config, options()).get(kConfigMaps, a_);
  EXPECT_EQ(server_.requests("GET").back().line,
            "GET /k8s/c-1/api/v1/namespaces/team/configmaps/a");
  EXPECT_THAT(missing.error().what(), HasSubstr("GET /api/v1/namespaces/team/configmaps/a: 404"));
}

TEST_F(ClientTest, ScaleWritesTheReplicas) {
  make({"a"});
  EXPECT_EQ(client_.scale(kConfigMaps, a_, 5)->at("spec").at("replicas"), 5);
  EXPECT_EQ(client_.get(kConfigMaps, a_, "scale")->at("kind"), "Scale");
  EXPECT_EQ(client_.get(kConfigMaps, a_)->at("spec").at("replicas"), 5);
}

TEST_F(ClientTest, ADeleteWithAnotherUidIsAConflict) {
  const Json made = client_.create(kConfigMaps, config_map("a")).take();
  const auto wrong = client_.remove(kConfigMaps, a_, {.uid = "someone-else"});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().conflict());
  EXPECT_TRUE(client_.remove(
      kConfigMaps, a_,
      {.uid = uid_of(made), .propagation = Propagation::kForeground, .grace_period = seconds(0)}));
  const Json sent = Json::parse(server_.requests("DELETE").back().body);
  EXPECT_EQ(sent["propagationPolicy"], "Foreground");
  EXPECT_EQ(sent["gracePeriodSeconds"], 0);
}

TEST_F(ClientTest, AListComesInChunks) {
  make({"a", "b", "c", "d", "e"});
  EXPECT_THAT(names({}, 2), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(server_.requests("limit=2").size(), 3u);
  EXPECT_THAT(names({}, 0), ElementsAre("a", "b", "c", "d", "e"));
}

TEST_F(ClientTest, AListThatLosesItsSnapshotBeginsAnew) {
  make({"a", "b", "c", "d", "e"});
  server_.fail("limit=2&continue", {.status = 410, .reason = "Expired"});
  EXPECT_THAT(names({}, 2), ElementsAre("a", "b", "restart", "a", "b", "c", "d", "e"));
}

TEST_F(ClientTest, AChunkThatIsTooLargeIsAskedForInSmallerOnes) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    Json large = config_map(name);
    large["data"]["a"] = std::string(10'000, 'x');
    ASSERT_TRUE(client_.create(kConfigMaps, large));
  }
  ClientOptions small = options();
  small.max_body = 15'000;
  Client client(server_.config(), small);
  std::vector<std::string> names;
  ListReceiver receiver;
  receiver.item = [&](const Json& item) { names.push_back(name_of(item)); };
  const size_t before = server_.requests("GET").size();
  ASSERT_TRUE(client.list(kConfigMaps, {}, receiver));
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "d", "e", "f"));
  // 500, 125, 31, 7, and six pages of one.
  EXPECT_EQ(server_.requests("GET").size() - before, 10u) << "none is asked for twice";
  small.max_body = 1000;
  EXPECT_THROW((void)Client(server_.config(), small).list(kConfigMaps, {}, receiver),
               http::TooLarge);
}

TEST_F(ClientTest, SelectorsAreEncoded) {
  ASSERT_TRUE(client_.create(kConfigMaps, config_map("a", {{"app/name", "x"}})));
  ASSERT_TRUE(client_.create(kConfigMaps, config_map("b", {{"app/name", "y"}})));
  const Selection selection{
      .ns = "team", .labels = "app/name=x,other!=z", .fields = "metadata.name=a"};
  EXPECT_THAT(names(selection, 500), ElementsAre("a"));
  EXPECT_THAT(server_.requests("labelSelector").back().line,
              HasSubstr("labelSelector=app%2Fname%3Dx%2Cother%21%3Dz"));
}

TEST_F(ClientTest, ItemsOfAListCarryTheirKind) {
  make({"a"});
  const auto items = client_.list(kConfigMaps).take();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].at("kind"), "ConfigMap");
  EXPECT_EQ(items[0].at("apiVersion"), "v1");
}

TEST_F(ClientTest, WhatIsDroppedOfSingleObjectsIsThereInAList) {
  ASSERT_TRUE(client_.create(kConfigMaps, config_map("a", {{"app", "x"}})));
  Client client(server_.config(), {.dropped = {{"metadata", "labels"}}});
  EXPECT_EQ(label(client.get(kConfigMaps, a_).take(), "app"), std::nullopt);
  EXPECT_EQ(label(client.list(kConfigMaps).take().at(0), "app"), "x");
}

TEST_F(ClientTest, WaitsAsTheServerAsks) {
  make({"a"});
  const TimePoint start = timer_.now();
  server_.fail("GET", {.status = 429, .retry_after = 7});
  EXPECT_TRUE(client_.get(kConfigMaps, a_));
  EXPECT_GE(timer_.now() - start, seconds(7));
  EXPECT_LT(timer_.now() - start, seconds(8));
}

TEST_F(ClientTest, ACreateIsRepeatedAfter429Only) {
  server_.fail("POST", {.status = 429});
  EXPECT_TRUE(client_.create(kConfigMaps, config_map("a")));
  server_.fail("POST", {.status = 503});
  const auto failed = client_.create(kConfigMaps, config_map("b"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), 503);
}

TEST_F(ClientTest, ReadsSurviveServerErrorsUntilTheirTriesAreUsedUp) {
  make({"a"});
  server_.fail("GET", {.status = 500}, 4);
  EXPECT_TRUE(client_.get(kConfigMaps, a_));
  server_.fail("GET", {.status = 503}, 5);
  const auto failed = client_.get(kConfigMaps, a_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), 503);
}

TEST_F(ClientTest, ALostAnswerToAnUpdateEndsInAConflictAndNotInASecondWrite) {
  const Json made = client_.create(kConfigMaps, config_map("a")).take();
  server_.fail("PUT", {.status = 504, .after = true});
  const auto result = client_.update(kConfigMaps, made);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().conflict());
}

TEST_F(ClientTest, AServerThatIsGoneIsAnErrorAndOneThatComesBackIsFound) {
  make({"a"});
  server_.stop();
  EXPECT_THROW((void)client_.get(kConfigMaps, a_), IoError);
  server_.start();
  EXPECT_TRUE(client_.get(kConfigMaps, a_));
}

TEST_F(ClientTest, AnAnswerThatNeverComesIsAnError) {
  ClientOptions impatient = options();
  impatient.timeout = std::chrono::milliseconds(100);
  impatient.retry.tries = 2;
  Client client(server_.config(), impatient);
  server_.fail("GET", {.hang = true}, 2);
  EXPECT_THROW((void)client.get(kConfigMaps, a_), IoError);
  // A busy server may read what was sent after the sender has given up.
  EXPECT_TRUE(server_.wait_for_requests("GET", 2));
  EXPECT_EQ(server_.requests("GET").size(), 2u);
  server_.release_hanging();
}

TEST_F(ClientTest, AStopEndsWhatIsUnderWay) {
  std::stop_source stop;
  Client client(server_.config(), options(), stop.get_token());
  server_.fail("GET", {.hang = true});
  std::jthread stopper([&] {
    EXPECT_TRUE(server_.wait_for_requests("GET", 1));
    stop.request_stop();
  });
  EXPECT_THROW((void)client.get(kConfigMaps, a_), Cancelled);
  server_.release_hanging();
}

TEST_F(ClientTest, NoMoreRequestsAreSentAtOnceThanAllowed) {
  ClientOptions narrow = options();
  narrow.in_flight = 2;
  Client client(server_.config(), narrow);
  server_.fail("GET", {.status = 404, .hang = true}, 4);
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back([&] { (void)client.get(kConfigMaps, a_); });
  EXPECT_TRUE(server_.wait_for_requests("GET", 2));
  // The others cannot have been sent: no answer has come. What is released makes room.
  EXPECT_EQ(server_.requests("GET").size(), 2u);
  for (size_t sent = 2; sent <= 4; sent += 2) {
    EXPECT_TRUE(server_.wait_for_requests("GET", sent));
    server_.release_hanging();
  }
}

TEST_F(ClientTest, ANewTokenIsUsedWhenTheOldOneIsRefused) {
  make({"a"});
  const TemporaryDirectory folder;
  write_file_atomically(folder.path() / "token", "old");
  server_.require_token("old");
  Config config = server_.config();
  config.token.file = folder.path() / "token";
  Client client(config, options());
  EXPECT_TRUE(client.get(kConfigMaps, a_));
  server_.require_token("new");
  write_file_atomically(folder.path() / "token", "new\n");
  EXPECT_TRUE(client.get(kConfigMaps, a_));
  server_.require_token("newer");
  const auto refused = client.get(kConfigMaps, a_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), 401);
}

TEST_F(ClientTest, NamesAreEncodedInPaths) {
  EXPECT_TRUE(client_.get(kConfigMaps, {"team", "a/../b"}).error().not_found());
  EXPECT_EQ(server_.requests("GET").back().line,
            "GET /api/v1/namespaces/team/configmaps/a%2F..%2Fb");
  EXPECT_THROW((void)client_.get(kConfigMaps, {"team", ""}), InvalidInput);
}

class RequestObserver final : public Observer {
 public:
  void request_finished(const Request& request) override {
    const std::scoped_lock lock(mutex);
    seen.push_back(request.verb + " " + request.code);
  }
  void request_retried(const Request&) override { ++retries; }
  std::mutex mutex;
  std::vector<std::string> seen;
  std::atomic<int> retries = 0;
};

TEST_F(ClientTest, TellsItsObserverEveryAnswer) {
  RequestObserver observer;
  ClientOptions observed = options();
  observed.observer = &observer;
  Client client(server_.config(), observed);
  server_.fail("GET", {.status = 503});
  (void)client.list(kConfigMaps);
  (void)client.get(kConfigMaps, a_);
  server_.stop();
  EXPECT_THROW((void)client.create(kConfigMaps, config_map("a")), IoError);
  EXPECT_THAT(observer.seen, ElementsAre("LIST 503", "LIST 200", "GET 404", "POST <error>"));
  EXPECT_EQ(observer.retries, 1);
}

}  // namespace
}  // namespace outrigger::kube
