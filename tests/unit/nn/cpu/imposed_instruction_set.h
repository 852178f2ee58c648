#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "nn/cpu/instruction_set.h"

/// For tests that run once under every instruction set that the machine has (CMakeLists.txt).
namespace outrigger::nn::testing {

class ImposedInstructionSet : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("OUTRIGGER_TEST_INSTRUCTION_SET");
    if (name == nullptr) return;
    if (!cpu::has_instruction_set(name)) GTEST_SKIP() << "this machine has no " << name;
    cpu::set_instruction_set(name);
  }
};
inline const auto* const kImposedInstructionSet =
    ::testing::AddGlobalTestEnvironment(new ImposedInstructionSet);

}  // namespace outrigger::nn::testing
