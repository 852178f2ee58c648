#include "nn/cpu/kernels/table.inc.h"
#include "nn/cpu/kernels/tables.h"

namespace outrigger::nn::cpu {

const Kernels& baseline_kernels() { return kTable; }

}  // namespace outrigger::nn::cpu
