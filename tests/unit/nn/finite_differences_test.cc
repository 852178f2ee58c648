#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "nn/reference/backend.h"
#include "op_cases.h"

namespace outrigger::nn::testing {
namespace {

// The scalar whose gradient backward gives: sum of output * output_gradient.
double objective(const Backend& backend, ThreadPool& threads, const OpCase& op_case,
                 const OpValues& values) {
  const OpResult result = run_case(backend, threads, op_case, values);
  double sum = 0;
  for (size_t i = 0; i < result.output.size(); ++i)
    sum += double{result.output[i]} * values.output_gradient[i];
  return sum;
}

class FiniteDifferences : public ::testing::TestWithParam<OpCase> {};

// Moves a list of numbers along one direction, which tests all its components at once, and compares
// the change of the objective with what the gradient foretells. Where a value lies so near a kink
// (ReLU, max pool) that the move crosses it, that step says nothing; so the best of three counts. A
// wrong gradient is wrong for all.
void expect_gradient(const OpCase& op_case, const OpValues& values,
                     std::vector<float> OpValues::*moved, const std::vector<float>& gradient,
                     const std::vector<bool>& may_move) {
  const auto backend = make_reference_backend();
  ThreadPool threads(1);
  double best = INFINITY, expected = 0, squares = 0;
  for (const double step : {1e-3, 1e-4, 3e-5}) {
    OpValues ahead = values, behind = values;
    expected = squares = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (!may_move.empty() && !may_move[i]) continue;
      const double direction = std::cos(static_cast<double>(i) * 1.7 + 0.3);
      (ahead.*moved)[i] = static_cast<float>((values.*moved)[i] + step * direction);
      (behind.*moved)[i] = static_cast<float>((values.*moved)[i] - step * direction);
      expected += gradient[i] * direction;
      squares += std::pow(gradient[i] * direction, 2);
    }
    const double change = (objective(*backend, threads, op_case, ahead) -
                           objective(*backend, threads, op_case, behind)) /
                          (2 * step);
    best = std::min(best, std::abs(change - expected));
  }
  EXPECT_LE(best, 0.01 * std::sqrt(squares)) << op_case.name << ": foretold " << expected;
}

TEST_P(FiniteDifferences, AgreeWithTheGradientsOfInputAndParameters) {
  const OpCase& op_case = GetParam();
  const auto backend = make_reference_backend();
  ThreadPool threads(1);
  const OpValues values = draw_values(op_case);
  const OpResult result = run_case(*backend, threads, op_case, values);
  expect_gradient(op_case, values, &OpValues::input, result.input_gradient, {});
  std::vector<bool> trains;
  for (const Parameter& parameter : op_case.graph->parameters()) {
    trains.insert(trains.end(), static_cast<size_t>(parameter.range.size), parameter.trainable);
  }
  expect_gradient(op_case, values, &OpValues::parameters, result.gradients, trains);
}

INSTANTIATE_TEST_SUITE_P(Reference, FiniteDifferences, ::testing::ValuesIn(op_cases()),
                         [](const auto& row) { return test_name(row.param); });

}  // namespace
}  // namespace outrigger::nn::testing
