#pragma once

#include "nn/cpu/kernels/kernels.h"

/// The same kernels compiled for each instruction set, each in a source file with its own compiler
/// flags.
namespace outrigger::nn::cpu {

const Kernels& baseline_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
const Kernels& avx512_bf16_kernels();

}  // namespace outrigger::nn::cpu
