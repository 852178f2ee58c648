#include "nn/cpu/kernels/table.inc.h"
#include "nn/cpu/kernels/tables.h"

namespace outrigger::nn::cpu {

const Kernels& avx512_bf16_kernels() { return kTable; }

}  // namespace outrigger::nn::cpu
