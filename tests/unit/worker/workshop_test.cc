#include "worker/workshop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "common/error.h"
#include "common/file.h"
#include "nn/cpu/instruction_set.h"
#include "worker/job.h"

namespace outrigger::worker {
namespace {

class WorkshopTest : public testing::Test {
 protected:
  WorkshopTest() {
    write_file_atomically(folder_.path() / "1.jpg", "x");
    setup_.job = R"({
      "apiVersion": "outrigger.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "faces"},
      "spec": {
        "model": {"name": "resnet18"},
        "data": {"train": {"path": ")" +
                 folder_.path().string() + R"("}, "image": {"height": 64, "width": 64}},
        "training": {"epochs": 1, "batchSize": 8, "microBatchSize": 8,
                     "schedule": {"constant": {"base": 0.1}}},
        "output": {"path": "runs"}}})";
    setup_.classes = 10;
    // Passes that take a while.
    setup_.deepest_cut = build_graph(read_job(setup_.job), 10).cut("layer4").layers;
    setup_.instruction_set = nn::cpu::instruction_set();
    setup_.probe = {{"1.jpg", 0, 0, 0}};
  }
  Hello hello(const std::stop_token& stop) {
    return Workshop(setup_, {}, threads_).hello(setup_, turns_, stop);
  }

  TemporaryDirectory folder_;
  worker::Setup setup_;
  ThreadPool threads_{1};
  std::atomic<uint64_t> turns_{0};
};

TEST_F(WorkshopTest, ReadsInATurnAndTimesItsStemInNone) {
  auto answered = std::async(std::launch::async, [&] { return hello({}); });
  bool times = false;
  while (answered.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    times = times || turns_ == 2;
  EXPECT_TRUE(times) << "it has read and is not done";
  EXPECT_EQ(turns_, 2U);
  const Hello answer = answered.get();
  EXPECT_EQ(answer.problem, "");
  EXPECT_GT(answer.pass_seconds, 0);
}

TEST_F(WorkshopTest, TimesNothingWhenAskedToStop) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(hello(stop.get_token()), Cancelled);
  EXPECT_EQ(turns_, 2U) << "it is not at work";
}

}  // namespace
}  // namespace outrigger::worker
