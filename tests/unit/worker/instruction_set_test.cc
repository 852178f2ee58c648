#include "nn/cpu/instruction_set.h"

#include <gtest/gtest.h>

#include <atomic>

#include "api/write.h"
#include "tests/support/own_process.h"
#include "tests/unit/api/sample_job.h"
#include "worker/job.h"
#include "worker/workshop.h"

/// What a worker answers a server whose processor is another.
namespace outrigger::worker {
namespace {

using testing_support::in_own_process;

class ServerOfAnotherProcessor : public testing::Test {
 protected:
  void SetUp() override {
    if (nn::cpu::best_instruction_set() == "baseline") GTEST_SKIP() << "there is no lesser one";
    const api::TrainingJob job = api::sample_job();
    setup_.job = api::to_json_text(job);
    setup_.classes = 3;
    setup_.deepest_cut = build_graph(job, setup_.classes).cut("pool1").layers;
    setup_.instruction_set = "baseline";
  }
  Hello answer() {
    ThreadPool threads(1);
    std::atomic<uint64_t> turns{0};
    return Workshop(setup_, {}, threads).hello(setup_, turns, {});
  }

  worker::Setup setup_;
};

TEST_F(ServerOfAnotherProcessor, IsGivenStemsOfItsOwnInstructionSet) {
  in_own_process([&] {
    EXPECT_NE(answer().numerics, "");
    EXPECT_EQ(nn::cpu::instruction_set(), "baseline");
  });
}

// As one behind the same name that was resumed elsewhere.
TEST_F(ServerOfAnotherProcessor, IsGivenPixelsOnlyByAWorkerThatHasComputedOtherwise) {
  in_own_process([&] {
    static_cast<void>(answer());
    setup_.instruction_set = nn::cpu::best_instruction_set();
    EXPECT_EQ(answer().numerics, "");
  });
}

TEST_F(ServerOfAnotherProcessor, IsGivenStemsAsTheyComeWhereItTrainsOnAGpu) {
  in_own_process([&] {
    setup_.only_timed = true;
    const Hello hello = answer();
    EXPECT_NE(hello.numerics, "");
    EXPECT_GT(hello.pass_seconds, 0);
    EXPECT_EQ(nn::cpu::instruction_set(), nn::cpu::best_instruction_set());
  });
}

}  // namespace
}  // namespace outrigger::worker
