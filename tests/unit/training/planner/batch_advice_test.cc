#include "training/planner/batch_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/training/planner/rates.h"

namespace outrigger::training {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// 64 images in `micro_batches`, on one cut that trains.
Profile profile_of(uint32_t micro_batches) {
  Profile profile;
  profile.batch = 64;
  profile.micro_batch = 64 / micro_batches;
  profile.costs.micro_batches = micro_batches;
  const double part = 1.0 / micro_batches;
  profile.costs.pixels = 8e6 * part;
  profile.costs.cuts = {{.head = 3.2 * part, .server_percent = 100},
                        {.cut = 5,
                         .name = "layer1",
                         .trains = true,
                         .stem_forward = 0.4 * part,
                         .stem_backward = 0.6 * part,
                         .head = 2.2 * part,
                         .activations = 8e6 * part,
                         .gradients = 8e6 * part,
                         .weights = 1e5,
                         .server_percent = 70}};
  return profile;
}

ServerRates server_for(const Profile& profile) {
  ServerRates server = kServer;
  server.decode = 0.01 * profile.micro_batch;
  return server;
}

class BatchAdvice : public testing::Test {
 protected:
  std::vector<std::string> advice(const Profile& profile, const Choice& choice) const {
    return batch_advice(profile, server_for(profile), workers, {choice, {}});
  }
  std::vector<WorkerRates> workers = std::vector<WorkerRates>(3, kWorker);
};

TEST_F(BatchAdvice, WarnsOfATrainedCutWithFewMicroBatches) {
  EXPECT_THAT(advice(profile_of(4), {1, 3}), Contains(HasSubstr("with 4 micro-batches a step")));
  EXPECT_THAT(advice(profile_of(8), {1, 3}), Not(Contains(HasSubstr("micro-batches a step"))));
  EXPECT_THAT(advice(profile_of(4), {}), Not(Contains(HasSubstr("micro-batches a step"))));
  Profile frozen = profile_of(4);
  frozen.costs.cuts[1].trains = false;
  EXPECT_THAT(advice(frozen, {1, 3}), Not(Contains(HasSubstr("micro-batches a step"))));
}

TEST_F(BatchAdvice, NamesALargerBatchWhereTheOptimizerIsMostOfAStep) {
  Profile profile = profile_of(8);
  profile.costs.optimizer = 4;
  EXPECT_THAT(advice(profile, {}), Contains(HasSubstr("batchSize: 128 would give 1.")));
}

TEST_F(BatchAdvice, NamesNoneThatMemoryDoesNotHold) {
  Profile profile = profile_of(8);
  profile.costs.optimizer = 4;
  profile.costs.parameters = 1e9;
  ServerRates server = server_for(profile);
  server.memory = 64e9;
  EXPECT_THAT(batch_advice(profile, server, {}, {{}, {}}), Not(IsEmpty()));
  server.memory = 1e9;
  EXPECT_THAT(batch_advice(profile, server, {}, {{}, {}}), IsEmpty());
}

TEST_F(BatchAdvice, IsOfThePlanThatTheJobFixes) {
  Profile profile = profile_of(8);
  profile.costs.optimizer = 4;
  const Choice fixed{1, 6};                  // as many for each worker
  profile.costs.cuts[1].activations = 1e11;  // its links take nearly all of a step
  EXPECT_THAT(advice(profile, fixed), Contains(HasSubstr("batchSize: 128"))) << "with no split";
  profile.options.cut = fixed.cut;
  profile.options.away = fixed.away;
  EXPECT_THAT(advice(profile, fixed), IsEmpty());
}

TEST_F(BatchAdvice, ReckonsWithOneRanksPartOfTheBatch) {
  Profile two = profile_of(8);
  EXPECT_EQ(ranks_of(two), 1u);
  two.batch *= 2;
  EXPECT_EQ(ranks_of(two), 2u);
  two.costs.optimizer = 4;
  Profile one = profile_of(8);
  one.costs.optimizer = 4;
  EXPECT_THAT(advice(one, {}), Not(IsEmpty()));
  std::vector<std::string> expected = advice(one, {});
  for (std::string& sentence : expected) {
    const auto at = sentence.find("batchSize: 128");
    if (at != std::string::npos) sentence.replace(at, 14, "batchSize: 256");
  }
  EXPECT_EQ(advice(two, {}), expected) << "each rank is as before";
}

TEST(WhatWouldFit, IsTheLargestMicroBatchThatDoes) {
  JobCosts job;
  job.micro_batches = 4;
  job.cuts = {{.head_kept = 16e6}};
  ServerRates server;
  server.memory = 9e6;
  EXPECT_EQ(what_would_fit(job, 16, server, {}), "; spec.training.microBatchSize: 8 would fit");
  server.memory = 5e5;
  EXPECT_THAT(what_would_fit(job, 16, server, {}), HasSubstr("no microBatchSize fits"));
}

TEST_F(BatchAdvice, LargerMicroBatchesWhereTheServerHasMoreCoresThanBlocks) {
  Profile profile = profile_of(4);
  profile.block_samples = 4;
  ServerRates server = server_for(profile);
  server.own_cores = 16;
  server.cores = cores_at_work(profile, server.own_cores);
  EXPECT_THAT(batch_advice(profile, server, {}, {{}, {}}),
              Contains(HasSubstr("microBatchSize: 32 would give 1.")));
  server.own_cores = server.cores;
  EXPECT_THAT(batch_advice(profile, server, {}, {{}, {}}),
              Not(Contains(HasSubstr("microBatchSize: 32"))));
}

TEST_F(BatchAdvice, SmallerMicroBatchesWhereAStepHasFewLeases) {
  EXPECT_THAT(advice(profile_of(2), {}), Contains(HasSubstr("microBatchSize: 16 would give")));
}

TEST_F(BatchAdvice, SaysNothingWhereNothingIsToGain) {
  workers.clear();
  EXPECT_THAT(advice(profile_of(16), {}), IsEmpty());
}

}  // namespace
}  // namespace outrigger::training
