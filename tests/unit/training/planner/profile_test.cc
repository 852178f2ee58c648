#include "training/planner/model/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/error.h"

namespace outrigger::training {
namespace {

using testing::HasSubstr;

Profile profile() {
  Profile measured;
  measured.samples = 200'000;
  measured.batch = 64;
  measured.micro_batch = 16;
  measured.decode = 0.02;
  measured.block_samples = 4;
  measured.options.cut = 1;
  measured.costs.micro_batches = 4;
  measured.costs.pixels = 1e6;
  measured.costs.optimizer = 0.001;
  measured.costs.link_work = {
      .frame = 3e-5, .byte = 2e-10, .activations = 1e-10, .gradients = 3e-10};
  measured.costs.cuts = {{.head = 0.4, .server_percent = 100},
                         {.cut = 3, .name = "pool1", .trains = true, .stem_forward = 0.1},
                         {.cut = 5, .name = "pool2", .stem_forward = 0.2, .device_stem = 0.01}};
  measured.costs.layers = {{"conv1", 0.1, 0.2, 3e6, 4e3}, {"fc", 0.3, 0.4}};
  return measured;
}

std::string error_of(const std::string& text) {
  try {
    read_profile(text, "p.json");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(profile());
  return text.replace(text.find(from), from.size(), to);
}

TEST(Profile, IsReadAsItWasWritten) {
  const Profile read = read_profile("{\"profile\": " + to_json(profile()) + "}", "p.json");
  EXPECT_EQ(to_json(read), to_json(profile()));
  EXPECT_EQ(read.options.cut, 1u);
  EXPECT_FALSE(read.costs.cuts[1].device_stem);
  EXPECT_EQ(read.costs.cuts[2].stem_here(), 0.01);
  EXPECT_FALSE(read.options.away);
  EXPECT_EQ(read.costs.layers[1].name, "fc");
  EXPECT_EQ(read.costs.layers[0].kept, 3e6);
  EXPECT_EQ(read.samples, 200'000u);
  EXPECT_EQ(read.block_samples, 4u);
  EXPECT_EQ(read.costs.link_work.frame, 3e-5);
  EXPECT_EQ(read.costs.link_work.gradients, 3e-10);
}

TEST(Profile, OfAnEarlierVersionKnowsNoWorkOfLinks) {
  const Profile read = read_profile(with("\"linkWork\"", "\"unknown\""), "p.json");
  EXPECT_EQ(read.costs.link_work.frame, 0);
  EXPECT_EQ(read.costs.pixels, 1e6);
}

TEST(Profile, TellsHowManyCoresPassesKeepAtWork) {
  Profile measured = profile();  // four blocks
  EXPECT_EQ(cores_at_work(measured, 0.25), 0.25);
  EXPECT_EQ(cores_at_work(measured, 2), 2);
  EXPECT_EQ(cores_at_work(measured, 3), 2) << "the fourth block is one core's, while two wait";
  EXPECT_EQ(cores_at_work(measured, 4), 4);
  EXPECT_EQ(cores_at_work(measured, 3.5), 3.5) << "a quota of four threads";
  EXPECT_EQ(cores_at_work(measured, 64), 4);
  EXPECT_EQ(cores_at_work(measured, 1e12), 4);
  EXPECT_EQ(cores_at_work(measured, 0), 0);
  measured.micro_batch = 64;
  EXPECT_EQ(cores_at_work(measured, 64), 16);
  measured.micro_batch = 5;
  EXPECT_EQ(cores_at_work(measured, 2), 5.0 / 3) << "two, two, and one behind";
  measured.block_samples = 0;
  EXPECT_EQ(cores_at_work(measured, 64), 64) << "not known";
  const Profile earlier = read_profile(with("\"blockSamples\"", "\"unknown\""), "p.json");
  EXPECT_EQ(earlier.block_samples, 0u);
}

TEST(Profile, SaysWhichFieldIsWrong) {
  EXPECT_THAT(error_of("nothing"), HasSubstr("outrigger plan job.yaml -o json"));
  EXPECT_THAT(error_of("{}"), HasSubstr("p.json: profile.samples: missing"));
  EXPECT_THAT(error_of(with("\"microBatches\":4", "\"microBatches\":0")), HasSubstr("at least 1"));
  EXPECT_THAT(error_of(with("\"microBatch\":16", "\"microBatch\":0")), HasSubstr("at least 1"));
  EXPECT_THAT(error_of(with("\"decode\":0.02", "\"decode\":-1")),
              HasSubstr("profile.decode: -1 is not allowed"));
  EXPECT_THAT(error_of(with("\"name\":\"pool1\"", "\"name\":7")),
              HasSubstr("profile.cuts[1].name: text is needed"));
  EXPECT_THAT(error_of(with("\"frame\":3e-05", "\"frame\":[]")),
              HasSubstr("profile.linkWork.frame: [] is not allowed"));
}

}  // namespace
}  // namespace outrigger::training
