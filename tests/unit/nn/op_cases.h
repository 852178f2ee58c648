#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/thread_pool.h"
#include "nn/program.h"

/// The one table of operations that every backend is tested by (op_cases.json, which
/// tools/make_fixtures.py reads too): the reference against numbers made by PyTorch, other backends
/// against the reference.
namespace outrigger::nn::testing {

/// A graph of "normalize", "input" (a layer that passes values through), and the case's layers "2",
/// "3", …. The segment behind "input" is what is tested; its input is float32.
struct OpCase {
  std::string name;
  int64_t batch = 1;
  uint64_t draw = 0;  // which numbers are drawn; chosen so that none lies at a kink, where rounding
                      // would decide
  bool torch = true;  // whether PyTorch can say what comes out (it draws other dropout masks)
  std::shared_ptr<const Graph> graph;
  Segment segment;
};

const std::vector<OpCase>& op_cases();

/// What goes into a case.
struct OpValues {
  std::vector<float> parameters;  // the segment's
  std::vector<float> buffers;
  std::vector<float> input;            // {m, H, W, C}
  std::vector<float> output_gradient;  // as the output
  std::vector<int32_t> labels;         // one a sample: for ArcFace
  std::vector<uint64_t> slots;
};

/// Drawn from the case's name and draw: normal inputs and gradients, weights of about 1 / sqrt(fan
/// in), variances around 1.
OpValues draw_values(const OpCase& op_case);

struct OpResult {
  std::vector<float> output;  // in training
  std::vector<float> statistics;
  std::vector<float> input_gradient;
  std::vector<float> gradients;
  std::vector<float> inference;  // the output by running averages
};

/// Compiles, loads, and runs forward and backward in training and forward in inference. What goes
/// in is rounded to the type that the program takes.
OpResult run_case(const Backend& backend, ThreadPool& threads, const OpCase& op_case,
                  const OpValues& values, Precision precision = Precision::kFloat32);

/// For GoogleTest's parameter names, which may hold letters and digits only.
std::string test_name(const OpCase& op_case);

}  // namespace outrigger::nn::testing
