#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "imposed_instruction_set.h"
#include "network_run.h"
#include "nn/cpu/backend.h"
#include "nn/reference/backend.h"
#include "op_cases.h"

namespace outrigger::nn {
namespace {

using testing::op_cases;
using testing::OpCase;
using testing::OpResult;

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

class EveryConvolution : public ::testing::TestWithParam<OpCase> {};

// Maps and gradients rounded to eight bits, sums in float32.
TEST_P(EveryConvolution, ComesCloseInBfloat16) {
  ThreadPool threads(2);
  const auto backend = cpu::make_cpu_backend();
  const auto values = draw_values(GetParam());
  const OpResult exact = run_case(*backend, threads, GetParam(), values);
  const OpResult rounded = run_case(*backend, threads, GetParam(), values, Precision::kBFloat16);
  constexpr double kTolerance = 0.01;
  EXPECT_LT(testing::relative_distance(rounded.output, exact.output), kTolerance);
  EXPECT_LT(testing::relative_distance(rounded.input_gradient, exact.input_gradient), kTolerance);
  EXPECT_LT(testing::relative_distance(rounded.gradients, exact.gradients), kTolerance);
  EXPECT_LT(testing::relative_distance(rounded.inference, exact.inference), kTolerance);
}

std::vector<OpCase> convolutions() {
  std::vector<OpCase> cases;
  // Alone behind what normalizes and the input: no kinks follow.
  constexpr int kLayers = 3;
  std::ranges::copy_if(op_cases(), std::back_inserter(cases), [](const OpCase& one) {
    return one.name.starts_with("convolution") && one.graph->size() == kLayers;
  });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Table, EveryConvolution, ::testing::ValuesIn(convolutions()),
                         [](const auto& parameter) { return test_name(parameter.param); });

}  // namespace
}  // namespace outrigger::nn
