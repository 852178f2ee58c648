#include "nn/cpu/instruction_set.h"

#include <gtest/gtest.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "common/error.h"
#include "nn/cpu/kernels/kernels.h"
#include "tests/support/own_process.h"

namespace outrigger::nn::cpu {
namespace {

using testing_support::in_own_process;

// A server asks what it computes with before it knows what a checkpoint was computed with.
TEST(InstructionSet, IsAskedForWithoutBeingSettled) {
  in_own_process([] {
    EXPECT_EQ(instruction_set(), best_instruction_set());
    EXPECT_EQ(computes_bfloat16(), has_instruction_set("avx512_bf16"));
    set_instruction_set("baseline");
    EXPECT_EQ(instruction_set(), "baseline");
    EXPECT_FALSE(computes_bfloat16());
    set_instruction_set(best_instruction_set());
    EXPECT_EQ(instruction_set(), best_instruction_set());
  });
}

TEST(InstructionSet, StaysAsItIsOnceKernelsAreChosen) {
  in_own_process([] {
    if (best_instruction_set() == "baseline") return;
    set_instruction_set("baseline");
    const int64_t lanes = kernels().lanes;
    EXPECT_THROW(set_instruction_set(best_instruction_set()), InvalidInput);
    set_instruction_set("baseline");
    EXPECT_EQ(instruction_set(), "baseline");
    EXPECT_EQ(kernels().lanes, lanes);
  });
}

TEST(InstructionSet, HoldsOneDnnWhateverWasAskedBefore) {
  in_own_process([] {
    EXPECT_TRUE(has_instruction_set(best_instruction_set()));
    set_instruction_set("baseline");
    settle_instruction_set();
    EXPECT_EQ(dnnl::get_effective_cpu_isa(), dnnl::cpu_isa::sse41);
  });
}

TEST(InstructionSet, IsOneThatThereIs) {
  EXPECT_THROW(set_instruction_set("neon"), InvalidInput);
  EXPECT_THROW(has_instruction_set("neon"), InvalidInput);
}

}  // namespace
}  // namespace outrigger::nn::cpu
