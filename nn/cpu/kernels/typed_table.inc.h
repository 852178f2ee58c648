#pragma once

#include "nn/cpu/kernels/elementwise.inc.h"
#include "nn/cpu/kernels/grouped.inc.h"
#include "nn/cpu/kernels/norm.inc.h"
#include "nn/cpu/kernels/pool.inc.h"

namespace {

template <typename T>
constexpr outrigger::nn::cpu::TypedKernels<T> typed_table() {
  return {norm_statistics<T>,
          norm_forward<T>,
          norm_reduce<T>,
          norm_backward<T>,
          relu_forward<T>,
          relu_backward<T>,
          prelu_forward<T>,
          prelu_backward<T>,
          add<T>,
          column_sums<T>,
          normalize<T>,
          max_pool_forward<T>,
          max_pool_backward<T>,
          average_pool_forward<T>,
          average_pool_backward<T>,
          global_average_forward<T>,
          global_average_backward<T>,
          flatten_forward<T>,
          flatten_backward<T>,
          to_float<T>,
          from_float<T>,
          block_channels<T>,
          grouped_row<T>,
          grouped_gradient<T>};
}

}  // namespace
