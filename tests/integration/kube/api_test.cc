// The client against a real API server: what the fake one only claims.
#include <gmock/gmock.h>

#include <csignal>

#include "common/error.h"
#include "kube/cache/watch.h"
#include "tests/integration/kube/real_cluster.h"

namespace outrigger::kube {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class RealApi : public RealCluster {
 protected:
  std::string list_version() {
    ListReceiver receiver;
    receiver.item = [](const Json&) {};
    return client_->list(kConfigMaps, {.ns = ns_, .labels = "app=test"}, receiver).take();
  }
  WatchOptions watching(const std::string& version) {
    return {.resource = kConfigMaps,
            .selection = {.ns = ns_, .labels = "app=test"},
            .resource_version = version};
  }
};

TEST_F(RealApi, AnObjectLivesAndDies) {
  Json made = make("a");
  made["data"]["a"] = "2";
  const Json updated = client_->update(kConfigMaps, made).take();
  EXPECT_TRUE(is_older_version(resource_version_of(made), resource_version_of(updated)));
  EXPECT_EQ(client_->get(kConfigMaps, key("a"))->at("data").at("a"), "2");
  EXPECT_TRUE(client_->remove(kConfigMaps, key("a"), {.uid = uid_of(made)}));
  EXPECT_TRUE(client_->get(kConfigMaps, key("a")).error().not_found());
}

TEST_F(RealApi, EachRefusalIsTold) {
  const Json made = make("a");
  EXPECT_TRUE(client_->create(kConfigMaps, config_map("a")).error().already_exists());
  Json newer = made;
  newer["data"]["a"] = "2";
  ASSERT_TRUE(client_->update(kConfigMaps, newer));
  newer["data"]["a"] = "3";
  EXPECT_TRUE(client_->update(kConfigMaps, newer).error().conflict());
  EXPECT_TRUE(client_->remove(kConfigMaps, key("a"), {.uid = "another"}).error().conflict());
  const auto invalid = client_->create(kConfigMaps, config_map("Not_A_Name"));
  ASSERT_FALSE(invalid);
  EXPECT_TRUE(invalid.error().invalid());
  EXPECT_EQ(invalid.error().reason(), "Invalid");
  EXPECT_THAT(invalid.error().message(), HasSubstr("metadata.name"));
  EXPECT_FALSE(invalid.error().details().at("causes").empty());
}

TEST_F(RealApi, UnknownFieldsAreRefusedWhereThatIsAskedFor) {
  Json object = config_map("a");
  object["dataa"] = {{"b", "c"}};
  const auto strict = client_->create(kConfigMaps, object);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code(), 400);
  EXPECT_THAT(strict.error().message(), HasSubstr("unknown field \"dataa\""));
  EXPECT_TRUE(client_->create(kConfigMaps, object, {.strict = false, .dry_run = true}));
  EXPECT_TRUE(client_->get(kConfigMaps, key("a")).error().not_found());
}

TEST_F(RealApi, WhoHasNoCredentialsIsRefused) {
  Config stranger = config_;
  stranger.certificate = stranger.key = stranger.token = {};
  const auto refused = Client(stranger).get(kConfigMaps, key("a"));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().forbidden() || refused.error().code() == 401);
}

TEST_F(RealApi, AServerOfAnotherAuthorityIsNotTrusted) {
  Config other = config_;
  other.authorities = {};
  ClientOptions once;
  once.retry.tries = 1;
  EXPECT_THAT([&] { (void)Client(other, once).get(kConfigMaps, key("a")); },
              testing::ThrowsMessage<IoError>(HasSubstr("not trusted")));
}

TEST_F(RealApi, AListComesInChunks) {
  for (int i = 0; i < 25; ++i) make("a-" + std::to_string(i));
  size_t items = 0;
  ListReceiver receiver;
  receiver.item = [&](const Json& item) {
    ++items;
    EXPECT_EQ(item.at("kind"), "ConfigMap");
    EXPECT_FALSE(item.at("metadata").contains("managedFields"));
  };
  const auto version =
      client_->list(kConfigMaps, {.ns = ns_, .labels = "app=test"}, receiver, kManagedFields, 10);
  ASSERT_TRUE(version);
  EXPECT_FALSE(version->empty());
  EXPECT_EQ(items, 25u);
}

TEST_F(RealApi, PatchesOfEachKind) {
  make("a");
  const Json add = Json::parse(R"([{"op": "add", "path": "/data/b", "value": "2"}])");
  EXPECT_EQ(client_->patch(kConfigMaps, key("a"), PatchType::kJson, add)->at("data").at("b"), "2");
  EXPECT_EQ(client_->patch(kConfigMaps, key("a"), PatchType::kMerge, {{"data", {{"b", nullptr}}}})
                ->at("data"),
            Json({{"a", "1"}}));
  const Json wanted = config_map("a", "mine");
  const auto contested =
      client_->patch(kConfigMaps, key("a"), PatchType::kApply, wanted, {.field_manager = "one"});
  ASSERT_FALSE(contested);
  EXPECT_TRUE(contested.error().conflict());
  EXPECT_EQ(client_
                ->patch(kConfigMaps, key("a"), PatchType::kApply, wanted,
                        {.field_manager = "one", .force = true})
                ->at("data")
                .at("a"),
            "mine");
}

TEST_F(RealApi, ScaleAndStatusAreSubresources) {
  const Json labels{{"app", "test"}};
  const Json deployment{{"apiVersion", "apps/v1"},
                        {"kind", "Deployment"},
                        {"metadata", {{"name", "d"}, {"namespace", ns_}}},
                        {"spec",
                         {{"replicas", 1},
                          {"selector", {{"matchLabels", labels}}},
                          {"template",
                           {{"metadata", {{"labels", labels}}},
                            {"spec", {{"containers", {{{"name", "c"}, {"image", "none"}}}}}}}}}}};
  ASSERT_TRUE(client_->create(kDeployments, deployment));
  EXPECT_EQ(client_->scale(kDeployments, key("d"), 3)->at("spec").at("replicas"), 3);
  EXPECT_EQ(client_->get(kDeployments, key("d"), "scale")->at("kind"), "Scale");
  // Controllers of the cluster may write it meanwhile.
  for (int tries = 0; tries < 20; ++tries) {
    Json current = client_->get(kDeployments, key("d")).take();
    current["status"]["collisionCount"] = 7;
    current["spec"]["replicas"] = 9;
    const auto written = client_->update_status(kDeployments, current);
    if (!written && written.error().conflict()) continue;
    ASSERT_TRUE(written);
    EXPECT_EQ(written->at("status").at("collisionCount"), 7);
    EXPECT_EQ(written->at("spec").at("replicas"), 3);
    return;
  }
  FAIL() << "twenty conflicts in a row";
}

TEST_F(RealApi, AnswersWithMetadataAloneWhereAsked) {
  const Json made =
      client_->create(kConfigMaps, config_map("a"), {.answer = Form::kMetadata}).take();
  EXPECT_EQ(name_of(made), "a");
  EXPECT_FALSE(resource_version_of(made).empty());
  EXPECT_FALSE(made.contains("data"));
  const auto patched = client_->patch(kConfigMaps, key("a"), PatchType::kMerge,
                                      {{"data", {{"b", "2"}}}}, {.answer = Form::kMetadata});
  EXPECT_FALSE(patched->contains("data"));
  Selection selection{.ns = ns_, .fields = "metadata.name=a", .form = Form::kMetadata};
  const auto listed = client_->list(kConfigMaps, selection).take();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(uid_of(listed.front()), uid_of(made));
  EXPECT_FALSE(listed.front().contains("data"));
  selection.form = Form::kWhole;
  EXPECT_TRUE(client_->list(kConfigMaps, selection)->front().contains("data"));
}

TEST_F(RealApi, AFinalizerKeepsADeletedObject) {
  Json object = config_map("a");
  object["metadata"]["finalizers"] = {"outrigger.dev/test"};
  const Json made = client_->create(kConfigMaps, object).take();
  const Json dying = client_->remove(kConfigMaps, key("a"), {.uid = uid_of(made)}).take();
  EXPECT_TRUE(is_deleting(dying));
  ASSERT_TRUE(client_->patch(kConfigMaps, key("a"), PatchType::kMerge,
                             {{"metadata", {{"finalizers", nullptr}}}}));
  EXPECT_TRUE(client_->get(kConfigMaps, key("a")).error().not_found());
}

TEST_F(RealApi, AWatchTellsWhatHappenedAfterTheList) {
  make("before");
  const std::string version = list_version();
  make("a");
  ASSERT_TRUE(client_->patch(kConfigMaps, key("a"), PatchType::kMerge, {{"data", {{"a", "2"}}}}));
  ASSERT_TRUE(client_->remove(kConfigMaps, key("a")));
  std::vector<std::string> seen;
  std::stop_source stop;
  const auto change = [&](const Change& told) {
    seen.push_back(std::to_string(static_cast<int>(told.type)) + name_of(told.object));
    if (seen.size() == 3) stop.request_stop();
  };
  EXPECT_THROW(watch(*client_, watching(version), change, stop.get_token()), Cancelled);
  EXPECT_THAT(seen, ElementsAre("0a", "1a", "2a"));
}

TEST_F(RealApi, AWatchEndsWhenItsTimeIsUp) {
  WatchOptions options = watching(list_version());
  options.shortest = options.longest = seconds(1);
  const WatchEnd end = watch(*client_, options, [](const Change&) {}, {});
  EXPECT_EQ(end.why, WatchEnd::Why::kEnded);
  EXPECT_EQ(end.reason, "");
}

// An API server that was started anew knows nothing of what was before.
TEST_F(RealApi, AVersionThatIsGoneMeansListAgain) {
  cluster().stop_api_server(SIGKILL);
  cluster().start_api_server();
  WatchOptions options = watching("1");
  options.shortest = options.longest = seconds(10);  // instead of hanging
  const WatchEnd end = watch(*client_, options, [](const Change&) {}, {});
  EXPECT_EQ(end.why, WatchEnd::Why::kExpired);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->code(), 410);
}

TEST_F(RealApi, ALargeObjectGoesThrough) {
  const std::string version = list_version();
  const std::string large(1'000'000, 'x');
  make("large", large);
  EXPECT_EQ(client_->get(kConfigMaps, key("large"))->at("data").at("a"), large);
  std::stop_source stop;
  size_t size = 0;
  const auto change = [&](const Change& told) {
    size = told.object.at("data").at("a").get<std::string>().size();
    stop.request_stop();
  };
  EXPECT_THROW(watch(*client_, watching(version), change, stop.get_token()), Cancelled);
  EXPECT_EQ(size, large.size());
}

}  // namespace
}  // namespace outrigger::kube
