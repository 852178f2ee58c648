#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>

#include "tests/integration/training/training_run.h"
#include "transport/address.h"
#include "transport/endpoint.h"
#include "worker/protocol/protocol.h"

/// What processes say and how they end when something is wrong with what they were given.
namespace outrigger::integration {
namespace {

namespace fs = std::filesystem;

void expect_said(const std::string& log, const std::string& text) {
  EXPECT_NE(log.find(text), std::string::npos) << "not in:\n" << log;
}

TEST(BadInput, AnUnknownFieldIsNamedWithItsPlace) {
  TrainingRun run({.more_training = "    batchsize: 3\n"});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  expect_said(run.server_log(), "spec.training.batchsize");
  expect_said(run.server_log(), "batchSize");
}

struct BadField {
  const char* name;
  JobText job;
  std::vector<const char*> said;
};

class BadFields : public testing::TestWithParam<BadField> {};

TEST_P(BadFields, EndTheServerWithFieldValueAndWhatIsAllowed) {
  TrainingRun run(GetParam().job);
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  for (const char* text : GetParam().said) expect_said(run.server_log(), text);
}

INSTANTIATE_TEST_SUITE_P(
    Every, BadFields,
    testing::Values(
        BadField{"WrongType", {.rate = "fast"}, {"schedule.constant.base", "\"fast\"", "number"}},
        BadField{
            "ImpossibleNumber", {.steps = 0}, {"spec.training.steps: 0 is too small; at least 1"}},
        BadField{"ImpossibleProduct", {.batch = 18}, {"spec.training.batchSize", "18", "multiple"}},
        BadField{
            "UnknownLayerToFreeze", {.model = "\n    freezeUntil: relu9" + small_net()}, {"relu9"}},
        BadField{"AllLayersFrozen",
                 {.model = "\n    freezeUntil: classifier" + small_net()},
                 {"classifier", "nothing would be left to train"}},
        BadField{"WeightsThatAreNotThere",
                 {.model = "\n    weights: /no/such.safetensors" + small_net()},
                 {"spec.model.weights: /no/such.safetensors: no such file"}},
        BadField{"MicroBatchFarTooLargeForMemory",
                 {.cut = "Auto", .share = -1, .batch = 2048, .micro_batch = 2048, .side = 1024},
                 {"cut Input, with which the run begins, needs", "are free; "}},
        BadField{"WrongNumberOfClasses",
                 {.model = " {layers: [{name: pool, globalAveragePool: {}}, {name: fc, linear: "
                           "{features: 7}}]}"},
                 {"gives 7 values", "12 classes"}}),
    [](const auto& field) { return field.param.name; });

TEST(BadInput, AnUnknownCutListsTheLegalOnes) {
  TrainingRun run({.cut = "relu9"});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  expect_said(run.server_log(), "relu9");
  expect_said(run.server_log(), "relu2");
}

TEST(BadInput, ALossThatIsNoNumberEndsTheRunAndKeepsTheLastGoodCheckpoint) {
  TrainingRun run({.steps = 200,
                   .checkpoint_every = 1,
                   .more_training = "    averageWeights: 0.9\n",
                   .rate = "100000.0"});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 13);
  ASSERT_FALSE(run.checkpoints().empty());
  const auto last = run.checkpoints().back();
  // The loss of the step behind the checkpoint, or of a later one where no checkpoint was due.
  expect_said(run.server_log(), "not a number at step " + std::to_string(last));
  expect_said(run.server_log(), "the last good checkpoint is of step " + std::to_string(last));
  ASSERT_EQ(run.events("end").size(), 1u);
  EXPECT_EQ(run.events("end").back().at("state"), "NumericalError");
  expect_said(run.events("end").back().at("message"), "not a number at step");
  expect_said(read_file(run.directory() / "trace.json"), R"("name":"micro-batch")");
  const auto kept = run.directory() / ("step-" + std::to_string(last)) / "weights.safetensors";
  for (const auto& [name, values] : tensors(kept)) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST(BadInput, AWrongTokenIsRefusedAndTheWorkerSaysSo) {
  TrainingRun run({.steps = 4000});
  run.start_server();
  write_file_atomically(run.token_file(), "another token\n", 0600);
  run.start_worker();
  run.wait_for_worker(0);
  expect_said(run.worker_log(0), "token");
  EXPECT_TRUE(run.server_runs());
}

TEST(BadInput, APortInUseIsNamed) {
  TrainingRun first({.steps = 4000});
  first.start_server();
  TrainingRun second({.port = first.port()});
  second.start_server();
  EXPECT_EQ(second.wait_for_server(), 22);
  expect_said(second.server_log(), std::to_string(first.port()));
}

TEST(BadInput, AFormerRunIsNotOverwritten) {
  TrainingRun run({.steps = 3});
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 0);
  const std::string weights = run.weights();
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 10);
  expect_said(run.server_log(), "--resume");
  EXPECT_EQ(run.weights(), weights);
}

TEST(BadInput, BrokenImagesAreReplacedListedAndTooManyFailTheRun) {
  TrainingRun run({.steps = 30, .broken_images = 2, .max_bad_fraction = "0.05"});
  run.start_server();
  run.start_worker();
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_said(run.server_log(), "is broken");
  TrainingRun strict({.steps = 30, .broken_images = 2, .max_bad_fraction = "0.01"});
  strict.start_server();
  EXPECT_EQ(strict.wait_for_server(), 12);
  expect_said(strict.server_log(), "maxBadFraction");
}

TEST(BadInput, AWorkerThatSeesOtherDataMayNotJoin) {
  // The server must be there until the worker has been refused five times.
  TrainingRun run({.steps = 100'000, .broken_images = 0, .copy_data = true});
  run.start_server();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.data() / "train")) {
    if (entry.is_regular_file()) std::ofstream(entry.path(), std::ios::app) << "x";
  }
  run.start_worker();
  run.wait_for_worker(0);
  expect_said(run.worker_log(0), "other data");
}

TEST(BadInput, AWorkerOfAnotherVersionMayNotJoinAndHearsWhy) {
  TrainingRun run({.steps = 4000});
  run.start_server();
  transport::Address address{"127.0.0.1", static_cast<uint16_t>(run.port())};
  const auto link = transport::dial(address, "integration-token");
  const auto setup = link->receive(std::chrono::seconds(20));
  ASSERT_TRUE(setup);
  worker::Hello hello;
  hello.name = "old/0";
  hello.version = "0.0.1";
  link->send(worker::to_frame(hello));
  const auto answer = link->receive(std::chrono::seconds(20));
  ASSERT_TRUE(answer);
  const auto farewell = std::get<feed::Farewell>(worker::read_server_message(*answer, {}));
  EXPECT_FALSE(farewell.again);
  expect_said(farewell.reason, "its version is 0.0.1, the server's is " OUTRIGGER_VERSION);
  run.wait_for_log("old/0");
  EXPECT_TRUE(run.server_runs());
}

/// What is done to a copy of the data, and what the server says of it before it ends.
struct BadData {
  const char* name;
  JobText job;
  void (*spoil)(const fs::path& data);
  const char* said;
  int status = 12;  // what the server ends with
};

fs::path a_person(const fs::path& data) { return data / "train" / "0003"; }

void keep_photos(const fs::path& person, size_t count) {
  std::vector<fs::path> photos;
  for (const auto& photo : fs::directory_iterator(person)) photos.push_back(photo.path());
  for (size_t i = count; i < photos.size(); ++i) fs::remove(photos[i]);
}

class BadFolders : public testing::TestWithParam<BadData> {};

TEST_P(BadFolders, EndTheServerWithTheirNames) {
  JobText job = GetParam().job;
  job.copy_data = true;
  TrainingRun run(job);
  GetParam().spoil(run.data());
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), GetParam().status);
  expect_said(run.server_log(), GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(
    Every, BadFolders,
    testing::Values(BadData{"Missing",
                            {},
                            [](const fs::path& data) { fs::remove_all(data / "train"); },
                            "/train: no such folder"},
                    BadData{"WithoutClasses",
                            {},
                            [](const fs::path& data) {
                              fs::remove_all(data / "train");
                              fs::create_directories(data / "train");
                            },
                            "no class in it"},
                    BadData{"EmptyClass",
                            {},
                            [](const fs::path& data) { keep_photos(a_person(data), 0); },
                            "class \"0003\" has no image"},
                    BadData{"UnknownPersonInValidation",
                            {.validation = true},
                            [](const fs::path& data) {
                              fs::rename(data / "val" / "0003", data / "val" / "new");
                            },
                            "\"new\" is not one of the 12 classes of the training data"},
                    BadData{"OnePhotoEachToVerify",
                            {.more_training = "    evaluate: {metric: Verification}\n",
                             .validation = true},
                            [](const fs::path& data) {
                              for (const auto& person : fs::directory_iterator(data / "val"))
                                keep_photos(person.path(), 1);
                            },
                            "spec.training.evaluate.metric: Verification",
                            10}),
    [](const auto& data) { return data.param.name; });

TEST(BadInput, AClassOfOneImageIsWarnedOf) {
  TrainingRun run({.steps = 2, .copy_data = true});
  keep_photos(a_person(run.data()), 1);
  run.start_server();
  EXPECT_EQ(run.wait_for_server(), 0);
  expect_said(run.server_log(), "1 of 12 classes has one image only, among them \"0003\"");
}

TEST(BadInput, EveryKindOfBrokenImageIsReplacedWithItsReason) {
  TrainingRun run({.steps = 12, .max_bad_fraction = "0.1", .copy_data = true});
  const auto person = a_person(run.data());
  std::vector<fs::path> photos;
  for (const auto& photo : fs::directory_iterator(person)) photos.push_back(photo.path());
  ASSERT_GE(photos.size(), 4u);
  fs::resize_file(photos[0], fs::file_size(photos[0]) / 2);
  fs::resize_file(photos[1], 0);
  write_file_atomically(photos[2], "P5 100000 100000 255\n");
  write_file_atomically(photos[3], "this is no image");
  run.start_server();
  run.start_worker();
  EXPECT_EQ(run.wait_for_server(), 0);
  for (int i = 0; i < 4; ++i)
    expect_said(run.server_log(),
                photos[static_cast<size_t>(i)].filename().string() + " is broken");
  expect_said(run.server_log(), "100000x100000");
}

TEST(BadInput, AnImageThatCannotBeReadIsTheWorkersFaultAndTheRunGoesOn) {
  TrainingRun run({.steps = 60, .checkpoint_every = 20});
  const TemporaryDirectory empty("outrigger-empty");
  run.start_server();
  // The data vanishes when it has joined.
  fs::copy(faces(), empty.path() / "faces", fs::copy_options::recursive);
  run.start_worker({.data = empty.path() / "faces"});
  run.wait_for_log("joined");
  fs::remove_all(empty.path() / "faces" / "train");
  EXPECT_EQ(run.wait_for_server(), 0);
  EXPECT_EQ(run.weights(), train({.steps = 60}, 0)->weights());
}

}  // namespace
}  // namespace outrigger::integration
