#include "gpu-server/planning/rank_measures.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace outrigger::gpu_server {
namespace {

RankMeasures sample() {
  WorkerMeasures worker{.cores = 8, .memory = 4e9, .pass_seconds = 0.25};
  worker.first_decode = 0.5;
  worker.first_work = 0.375;
  worker.decode = 0.75;
  worker.read = 0.125;
  worker.stems[3] = {.forward = 1, .backward = 2, .decode = 0.5};
  worker.stems[7] = {.forward = 3, .backward = 4, .decode = 0.25, .weight = 0.5};
  worker.bytes_per_second = 1.25e8;
  worker.latency = 0.0078125;
  return {.busy = 1.5,
          .plan = 7,
          .memory = 3e9,
          .threads = 6,
          .workers = {worker, {.cores = 2}},
          .local = {.cores = 4, .decode = 0.25}};
}

TEST(RankMeasures, AreWhatWasPacked) {
  const RankMeasures told = sample();
  const RankMeasures heard = unpack_rank(pack(told));
  EXPECT_EQ(heard.busy, told.busy);
  EXPECT_EQ(heard.plan, told.plan);
  EXPECT_EQ(heard.memory, told.memory);
  EXPECT_EQ(heard.threads, told.threads);
  EXPECT_EQ(heard.local.decode, told.local.decode);
  ASSERT_EQ(heard.workers.size(), 2u);
  const WorkerMeasures& worker = heard.workers[0];
  const WorkerMeasures& before = told.workers[0];
  EXPECT_EQ(worker.cores, before.cores);
  EXPECT_EQ(worker.memory, before.memory);
  EXPECT_EQ(worker.pass_seconds, before.pass_seconds);
  EXPECT_EQ(worker.first_decode, before.first_decode);
  EXPECT_EQ(worker.first_work, before.first_work);
  EXPECT_EQ(worker.work(), before.work());
  EXPECT_EQ(worker.bytes_per_second, before.bytes_per_second);
  EXPECT_EQ(worker.latency, before.latency);
  ASSERT_EQ(worker.stems.size(), 2u);
  EXPECT_EQ(worker.stems.at(7).forward, 3);
  EXPECT_EQ(worker.stems.at(7).backward, 4);
  EXPECT_EQ(worker.stems.at(7).weight, 0.5);
  EXPECT_EQ(worker.stems.at(3).decode, 0.5);
  EXPECT_EQ(heard.workers[1].cores, 2u);
}

TEST(RankMeasures, OfAnotherVersionAreRefused) {
  const auto numbers = pack(sample());
  for (size_t size = 0; size < numbers.size(); ++size)
    EXPECT_THROW(unpack_rank(std::span(numbers).first(size)), IoError) << size;
  auto longer = numbers;
  longer.push_back(0);
  EXPECT_THROW(unpack_rank(longer), IoError);
  auto endless = numbers;
  endless[4] = 1e9f;  // workers
  EXPECT_THROW(unpack_rank(endless), IoError);
}

}  // namespace
}  // namespace outrigger::gpu_server
