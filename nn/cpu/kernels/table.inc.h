#pragma once

#include "nn/cpu/kernels/float_vectors.inc.h"
#include "nn/cpu/kernels/product.inc.h"
#include "nn/cpu/kernels/typed_table.inc.h"
#include "nn/cpu/kernels/winograd.inc.h"

namespace {

constexpr outrigger::nn::cpu::Kernels kTable{typed_table<float>(),
                                             typed_table<uint16_t>(),
                                             {winograd_input, winograd_gradient, winograd_output,
                                              winograd_weights, winograd_weight_gradient},
                                             kPanel,
                                             kLanes,
                                             product,
                                             overlap_add,
                                             multiply,
                                             accumulate,
                                             dot,
                                             scale_by};

}  // namespace
