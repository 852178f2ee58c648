#pragma once

#include <memory>

#include "nn/program.h"

namespace outrigger::nn {

/// The oracle: plain loops on one thread, one function a layer, sums in double, nothing fused.
/// Every other backend is held to it, and it to numbers made by PyTorch. Precision bfloat16 rounds
/// what enters and leaves a program and computes in float32. Slow; for tests and for machines
/// without another backend.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace outrigger::nn
