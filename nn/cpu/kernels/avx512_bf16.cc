#include "nn/cpu/kernels/tables.h"
#include "nn/cpu/kernels/typed_table.inc.h"

namespace outrigger::nn::cpu {

// Only what converts bfloat16 has other instructions.
const Kernels& avx512_bf16_kernels() {
  static const Kernels table = [] {
    Kernels kernels = avx512_kernels();
    kernels.bfloat16 = typed_table<uint16_t>();
    return kernels;
  }();
  return table;
}

}  // namespace outrigger::nn::cpu
