#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "nn/cpu/backend.h"
#include "nn/cpu/instruction_set.h"
#include "nn/reference/backend.h"
#include "op_cases.h"

namespace outrigger::nn {
namespace {

using testing::op_cases;
using testing::OpCase;
using testing::OpResult;

// The same cases run under every instruction set that the machine has (see CMakeLists.txt).
class ImposedInstructionSet : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("OUTRIGGER_TEST_INSTRUCTION_SET");
    if (name == nullptr) return;
    if (!cpu::has_instruction_set(name)) GTEST_SKIP() << "this machine has no " << name;
    cpu::set_instruction_set(name);
  }
};
const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new ImposedInstructionSet);

// The reference sums in double and rounds once; a float32 sum of n terms is off by about sqrt(n)
// roundings of what it adds up. 64 roundings of the largest value bound sums of some thousand terms
// with room for a norm behind them.
void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                  const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  const float tolerance = 64 * std::numeric_limits<float>::epsilon() * largest;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), tolerance)
        << what << " " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

class EveryOperation : public ::testing::TestWithParam<OpCase> {};

TEST_P(EveryOperation, GivesWhatTheReferenceGives) {
  static_cast<void>(kEnvironment);
  ThreadPool threads(2);
  const auto values = draw_values(GetParam());
  const OpResult expected = run_case(*make_reference_backend(), threads, GetParam(), values);
  const OpResult actual = run_case(*cpu::make_cpu_backend(), threads, GetParam(), values);
  expect_close(actual.output, expected.output, "output");
  expect_close(actual.statistics, expected.statistics, "statistics");
  expect_close(actual.input_gradient, expected.input_gradient, "input gradient");
  expect_close(actual.gradients, expected.gradients, "gradients");
  expect_close(actual.inference, expected.inference, "inference");
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOperation, ::testing::ValuesIn(op_cases()),
                         [](const auto& parameter) { return test_name(parameter.param); });

}  // namespace
}  // namespace outrigger::nn
