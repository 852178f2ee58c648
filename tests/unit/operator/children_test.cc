#include "operator/objects/children.h"

#include <gmock/gmock.h>

#include "api/parse.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

using testing::ElementsAre;

TEST(Children, TheConfigMapHoldsAJobThatAServerCanRun) {
  World world(
      "  activeDeadlineSeconds: 60\n  workers: {replicas: 1}\n"
      "  server: {template: {spec: {nodeSelector: {a: b}}}}\n");
  world.job.metadata.generation = 9;
  const Json map = build_config_map(world.job, 3);
  const auto told = api::resolve_training_job(map["data"]["job.yaml"].get<std::string>());
  ASSERT_EQ(api::to_string(told.errors), "");
  EXPECT_EQ(told.job.metadata.name, "faces");
  EXPECT_EQ(told.job.metadata.generation, 9) << "so that the server tells that it knows it";
  EXPECT_EQ(told.job.spec.server.pod_template, std::nullopt);
  EXPECT_EQ(told.job.spec.active_deadline, std::nullopt);
  EXPECT_FALSE(told.job.spec.suspend);
  EXPECT_EQ(told.job.spec.training, world.job.spec.training);
  EXPECT_EQ(map["metadata"]["name"], "faces-config-3");
  EXPECT_EQ(map["immutable"], true);
}

TEST(Children, ASplitChangedMeanwhileIsInTheNextAttemptsConfigMap) {
  World world;
  world.settle();
  world.spec().split.min_server_percent = 42;
  world.settle();
  EXPECT_FALSE(world.others.contains("ConfigMap/faces-config-2"));
  world.vanish("faces-server-0-0");
  world.settle();
  EXPECT_THAT(world.others.at("ConfigMap/faces-config-2")["data"]["job.yaml"].get<std::string>(),
              testing::HasSubstr("minServerPercent: 42"));
}

std::string file_of(const World& world, int attempt) {
  return world.others.at("ConfigMap/faces-config-" + std::to_string(attempt))["data"]["job.yaml"];
}

// A job that a newer operator began, with a field that this one does not know.
World begun_by_a_newer_operator() {
  World world = running();
  world.others.at("ConfigMap/faces-config-1")["data"]["job.yaml"] = "of a newer operator";
  world.unknown = {"spec.training.newThing"};
  return world;
}

TEST(Children, ARestartHandsOnTheFileOfANewerOperatorWhoseImageItKeeps) {
  World world = begun_by_a_newer_operator();
  for (int attempt = 2; attempt <= 3; ++attempt) {
    world.vanish(world.living("server").front());
    const auto events = world.settle();
    EXPECT_EQ(file_of(world, attempt), "of a newer operator");
    EXPECT_THAT(events,
                testing::Not(testing::Contains(testing::Field(&Event::reason, "UnknownFields"))));
    world.run_all();
    world.settle();
  }
}

TEST(Children, AJobThatIsResumedGetsOurImageAndOurFileAndSaysWhatIsMissing) {
  World world = begun_by_a_newer_operator();
  world.spec().suspend = true;
  for (int i = 0; i < 3; ++i) {
    world.settle();
    world.finish_deletions();
  }
  world.settle();
  world.spec().suspend = false;
  const auto events = world.settle();
  EXPECT_EQ(file_of(world, 2),
            build_config_map(world.job, 2)["data"]["job.yaml"].get<std::string>());
  EXPECT_THAT(events, testing::Contains(testing::Field(&Event::reason, "UnknownFields")));
}

TEST(Children, ARestartWhoseFormerFileIsGoneSaysWhatIsMissing) {
  World world = begun_by_a_newer_operator();
  world.others.erase("ConfigMap/faces-config-1");
  world.vanish("faces-server-0-0");
  EXPECT_THAT(world.settle(), testing::Contains(testing::Field(&Event::reason, "UnknownFields")));
}

TEST(Children, DefaultsAreNotTold) {
  const World world;
  const std::string told = build_config_map(world.job, 1)["data"]["job.yaml"];
  const auto read = api::resolve_training_job(told);
  EXPECT_EQ(api::to_string(read.errors), "");
  EXPECT_EQ(read.job.spec.checkpoint, world.job.spec.checkpoint);
  EXPECT_THAT(told, testing::Not(testing::HasSubstr("allReducePrecision")))
      << "a server of an image from before that field would refuse it";
}

TEST(Children, AnImageOfTheUsersIsToldDefaultsToo) {
  const World world(
      "  server: {engine: External, template: {spec: {containers: [{name: server, image: "
      "a/b}]}}}\n");
  const std::string told = build_config_map(world.job, 1)["data"]["job.yaml"];
  EXPECT_THAT(told, testing::HasSubstr("allReducePrecision"));
}

TEST(Children, WhatIsDeletedOrChangedIsNamedByItsUid) {
  World world;
  world.settle();
  world.run_all();
  world.settle();
  world.others.at("ConfigMap/faces-config-1")["metadata"]["uid"] = "map-uid";
  world.others.at("Service/faces-server")["metadata"]["uid"] = "service-uid";
  world.vanish("faces-server-0-0");
  std::vector<std::string> uids;
  for (int i = 0; i < 3; ++i) {
    for (const Action& action : world.pass().actions) {
      if (const auto* remove = std::get_if<Remove>(&action)) uids.push_back(remove->uid);
      if (const auto* patch = std::get_if<Patch>(&action))
        uids.push_back(patch->patch["metadata"]["uid"]);
    }
  }
  EXPECT_THAT(uids, testing::UnorderedElementsAre("map-uid", "service-uid"));
}

TEST(Children, ConfigMapsOfFormerAttemptsGoWithTheirLastPod) {
  World world;
  world.settle();
  world.run_all();
  world.settle();
  world.end("faces-server-0-0", {22});
  world.settle();
  EXPECT_TRUE(world.others.contains("ConfigMap/faces-config-1"));
  world.vanish("faces-server-0-0");
  world.settle();
  EXPECT_FALSE(world.others.contains("ConfigMap/faces-config-1"));
  EXPECT_TRUE(world.others.contains("ConfigMap/faces-config-2"));
}

TEST(Children, TokensDifferByJobPurposeAndKeyAndAreTheSameEveryTime) {
  Options options;
  options.token_key = "key";
  Options other = options;
  other.token_key = "another key";
  const std::string join = token(options, "uid", "join");
  EXPECT_EQ(join.size(), 64U);
  EXPECT_EQ(join, token(options, "uid", "join"));
  EXPECT_NE(join, token(options, "uid", "control"));
  EXPECT_NE(join, token(options, "another", "join"));
  EXPECT_NE(join, token(other, "uid", "join"));
}

TEST(Children, AServiceNamesServersThatAreNotReadyAndOnlyThoseOfItsAttempt) {
  World world;
  const Json service = build_service(world.job, 2);
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
  EXPECT_EQ(service["spec"]["selector"]["outrigger.dev/attempt"], "2");
  EXPECT_EQ(service["spec"]["selector"]["outrigger.dev/job-uid"], "0123456789ab");
}

TEST(Children, TheNetworkPolicyLetsInTheJobsOwnPodsAndAnyoneAtTheStatusPort) {
  World world;
  const Json policy = build_network_policy(world.job);
  const Json& ingress = policy["spec"]["ingress"];
  ASSERT_EQ(ingress.size(), 2U);
  EXPECT_EQ(ingress[0]["from"][0]["podSelector"]["matchLabels"]["outrigger.dev/job-uid"],
            "0123456789ab");
  EXPECT_EQ(ingress[0]["ports"], Json::parse(R"([{"protocol": "TCP"}])"));
  EXPECT_FALSE(ingress[1].contains("from"));
  EXPECT_EQ(ingress[1]["ports"][0]["port"], 8080);
  EXPECT_EQ(policy["spec"]["policyTypes"], Json::array({"Ingress"}));
}

TEST(Children, TheNetworkPolicyNamesTheStatusPortsOfAllRanksOfAPod) {
  World world("  server: {gpus: 4}\n");
  const Json policy = build_network_policy(world.job);
  const Json& ports = policy["spec"]["ingress"][1]["ports"];
  ASSERT_EQ(ports.size(), 4U);
  for (size_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(ports[rank], Json({{"protocol", "TCP"}, {"port", 8080 + rank}}));
}

TEST(Children, TheNetworkPolicyFollowsTheGpusOfAJobThatWasSuspended) {
  World world("  server: {gpus: 2}\n");
  world.options.gpu = true;
  world.settle();
  world.run_all();
  world.settle();
  const auto ports = [&] {
    return world.others.at("NetworkPolicy/faces")["spec"]["ingress"][1]["ports"].size();
  };
  EXPECT_EQ(ports(), 2U);
  for (const int gpus : {4, 1}) {
    world.spec().suspend = true;
    for (int i = 0; i < 3; ++i) {
      world.settle();
      world.finish_deletions();
    }
    world.settle();
    world.spec().server.gpus = gpus;
    world.spec().suspend = false;
    world.settle();
    world.run_all();
    world.settle();
    EXPECT_EQ(ports(), static_cast<size_t>(gpus));
  }
}

TEST(Children, OneOfAnOlderOperatorThatSaysNoRanksIsWrittenOnce) {
  World world = running();
  world.others.at("NetworkPolicy/faces")["metadata"]["labels"].erase("outrigger.dev/ranks");
  EXPECT_EQ(world.look().actions.size(), 1U);
  world.settle();
  EXPECT_THAT(world.look().actions, testing::IsEmpty());
}

TEST(Children, OneThatSomebodyDeletedComesBack) {
  World world;
  world.settle();
  world.others.clear();
  world.settle();
  std::vector<std::string> names;
  for (const auto& [name, object] : world.others) {
    if (object["kind"] != "Secret") names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("ConfigMap/faces-config-1", "NetworkPolicy/faces",
                                 "Service/faces-server"));
}

// What a plan makes, in its order: "Secret", "Pod", …
std::vector<std::string> made_by(const Plan& plan) {
  std::vector<std::string> kinds;
  for (const Action& action : plan.actions) {
    if (const auto* create = std::get_if<Create>(&action))
      kinds.push_back(create->head["kind"].get<std::string>());
  }
  return kinds;
}

TEST(Children, TheSecretIsMadeOnceForAllPodsOfABeginning) {
  World world("  workers: {replicas: 2}\n");
  EXPECT_EQ(made_by(world.look()).front(), "Secret");
  EXPECT_THAT(made_by(world.pass()), testing::Contains("Secret").Times(1));
  world.advance(seconds(20));
  world.vanish("faces-worker-0-0");
  EXPECT_THAT(made_by(world.pass()), ElementsAre("Pod"));
}

TEST(Children, APodThatIsMadeLongAfterTheSecretFindsItAgainIfSomebodyDeletedIt) {
  World world("  workers: {replicas: 2}\n");
  world.settle();
  world.run_all();
  world.settle();
  world.advance(seconds(30));
  world.vanish("faces-worker-0-0");
  EXPECT_THAT(made_by(world.pass()), ElementsAre("Secret", "Pod"));
  world.advance(seconds(29));
  world.vanish("faces-worker-1-0");
  EXPECT_THAT(made_by(world.pass()), ElementsAre("Pod")) << "it was found there just now";
}

TEST(Children, TheSecretOfPodsThatAreThereIsLikelyThereToWhoeverLeadsNext) {
  World world("  workers: {replicas: 2}\n");
  const auto guess = [&] {
    const Plan plan = world.look();
    const auto& first = std::get<Create>(plan.actions.at(0));
    EXPECT_EQ(first.kind, ObjectKind::kSecret);
    return first.likely_there;
  };
  EXPECT_FALSE(guess());
  world.settle();
  world.secret_made.reset();  // nobody remembers it
  EXPECT_TRUE(guess());
}

TEST(Children, APassThatMakesNoPodMakesNoSecretAgain) {
  World world("  workers: {replicas: 2}\n");
  world.settle();
  world.run_all();
  world.settle();
  world.advance(seconds(100'000));
  EXPECT_THAT(world.look().actions, testing::IsEmpty());
  world.spec().workers.replicas = 1;
  EXPECT_THAT(made_by(world.look()), testing::IsEmpty());
}

}  // namespace
}  // namespace outrigger::controller
