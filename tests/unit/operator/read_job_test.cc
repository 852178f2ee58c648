#include "operator/read_job.h"

#include <gtest/gtest.h>

#include "api/write.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

Json object_of(const World& world) { return Json::parse(api::to_json(world.job).dump()); }

TEST(ReadJob, AJobThatWasWrittenIsReadBackWhole) {
  World world("  workers: {replicas: 2}\n  activeDeadlineSeconds: 60\n");
  world.settle();
  world.run_all();
  world.settle();
  const JobRecord record = read_job(object_of(world));
  EXPECT_EQ(api::to_string(record.errors), "");
  EXPECT_EQ(record.job, world.job);
}

TEST(ReadJob, WhatKubernetesAddsToMetadataIsPassedOver) {
  Json object = object_of(World());
  object["metadata"]["generateName"] = "faces-";
  object["metadata"]["deletionGracePeriodSeconds"] = 0;
  object["metadata"]["selfLink"] = "/x";
  EXPECT_TRUE(read_job(object).errors.empty());
}

TEST(ReadJob, AStatusOfANewerOperatorKeepsWhatIsKnownOfIt) {
  World world;
  world.settle();
  Json object = object_of(world);
  object["status"]["restarts"] = 2;
  object["status"]["novelty"] = 3;
  const JobRecord record = read_job(object);
  EXPECT_TRUE(record.errors.empty());
  EXPECT_EQ(record.job.status->restarts, 2);
  EXPECT_EQ(record.job.status->execution_attempts, 1);
}

TEST(ReadJob, ASpecThatIsNotValidNamesItsFields) {
  Json object = object_of(World());
  object["spec"]["training"]["batchSize"] = 0;
  const std::string errors = api::to_string(read_job(object).errors);
  EXPECT_NE(errors.find("spec.training.batchSize"), std::string::npos);
}

TEST(ReadJob, ASpecOnlyWhoseFieldsDoNotGoTogetherWasReadWhole) {
  const World world;
  Json object = object_of(world);
  EXPECT_FALSE(read_job(object).only_invalid) << "nothing is wrong";
  object["spec"]["server"]["replicas"] = 7;  // that do not share a batch of 96
  const JobRecord invalid = read_job(object);
  EXPECT_FALSE(invalid.errors.empty());
  EXPECT_TRUE(invalid.only_invalid);
  EXPECT_EQ(invalid.job.spec.server.replicas, 7);
  EXPECT_TRUE(read_job_again(object, invalid).only_invalid);
  object["spec"]["training"]["batchSize"] = 0;
  EXPECT_FALSE(read_job(object).only_invalid);
}

TEST(ReadJob, ASpecThatNamesALayerThatIsNotThereWasReadWhole) {
  Json object = object_of(World());
  object["spec"]["model"] = {
      {"layers", Json::array({{{"name", "a"}, {"inputs", {"b"}}, {"relu", Json::object()}}})}};
  const JobRecord record = read_job(object);
  EXPECT_EQ(api::to_string(record.errors),
            "spec.model.layers[0].inputs[0]: \"b\" is no layer before \"a\"");
  EXPECT_TRUE(record.only_invalid);
}

TEST(ReadJob, WhatOnlyServersReadIsToldFromWhatPodsAreMadeOf) {
  const auto only_for_servers = [](const char* place, const Json& value) {
    Json object = object_of(World());
    object[Json::json_pointer(place)] = value;
    const JobRecord record = read_job(object);
    EXPECT_FALSE(record.errors.empty()) << place;
    EXPECT_EQ(read_job_again(object, record).only_for_servers, record.only_for_servers);
    return record.only_for_servers;
  };
  EXPECT_TRUE(only_for_servers("/spec/training/loss", {{"newLoss", Json::object()}}));
  EXPECT_TRUE(only_for_servers("/spec/training/precision", "Float8"));
  EXPECT_TRUE(only_for_servers("/spec/split/sharePercent", "a word"));
  EXPECT_FALSE(only_for_servers("/spec/data/volumeClaimName", 7)) << "pods mount it";
  EXPECT_FALSE(only_for_servers("/spec/server/engine", "Novel"));
  EXPECT_FALSE(read_job(object_of(World())).only_for_servers);
}

TEST(ReadJob, WhatANewerDefinitionHasIsPassedOverAndNamed) {
  const World world;
  Json object = object_of(world);
  object["spec"]["novelty"] = 1;
  object["spec"]["training"]["newThing"] = {{"enabled", true}};
  const JobRecord record = read_job(object);
  EXPECT_EQ(api::to_string(record.errors), "");
  EXPECT_EQ(record.unknown, (std::vector<std::string>{"spec.novelty", "spec.training.newThing"}));
  EXPECT_EQ(record.job.spec, read_job(object_of(world)).job.spec);
  EXPECT_EQ(read_job_again(object, record).unknown, record.unknown);
}

TEST(ReadJob, AnAlternativeOfANewerDefinitionIsNotTakenForAnother) {
  Json object = object_of(World());
  object["spec"]["training"]["loss"] = {{"newLoss", Json::object()}};
  const std::string errors = api::to_string(read_job(object).errors);
  EXPECT_NE(errors.find("spec.training.loss.newLoss: unknown field"), std::string::npos) << errors;
}

TEST(ReadJob, AJobWithoutAStatusHasAnEmptyOne) {
  Json object = object_of(World());
  object.erase("status");
  EXPECT_EQ(read_job(object).job.status, api::TrainingJobStatus());
}

TEST(ReadJob, AgainTakesTheSpecFromBeforeUnlessItChanged) {
  World world("  workers: {replicas: 3}\n");
  Json object = Json::parse(api::to_json(world.job).dump());
  const JobRecord first = read_job(object);
  object["status"]["restarts"] = 2;
  object["metadata"]["resourceVersion"] = "9";
  object["metadata"]["labels"] = {{"a", "b"}};
  const JobRecord again = read_job_again(object, first);
  const JobRecord anew = read_job(object);
  EXPECT_EQ(again.job.spec, anew.job.spec);
  EXPECT_EQ(again.job.status, anew.job.status);
  EXPECT_EQ(again.job.metadata.labels, anew.job.metadata.labels);
  EXPECT_EQ(again.job.metadata.resource_version, "9");
  EXPECT_TRUE(again.errors.empty()) << api::to_string(again.errors);
  object["spec"]["workers"]["replicas"] = 5;
  object["metadata"]["generation"] = 2;
  EXPECT_EQ(read_job_again(object, first).job.spec.workers.replicas, 5);
}

}  // namespace
}  // namespace outrigger::controller
