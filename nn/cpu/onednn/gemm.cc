#include "nn/cpu/onednn/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <string>

#include "common/error.h"
#include "nn/cpu/onednn/allocation_guard.h"

namespace outrigger::nn::cpu::onednn {

void gemm(const GemmSizes& sizes, const Matrix& a, const Matrix& b, const GemmResult& result) {
  const InsideOneDnn guard;
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', sizes.rows, sizes.columns,
                 sizes.inner, 1.0f, a.data, a.stride, b.data, b.stride, result.add ? 1.0f : 0.0f,
                 result.data, result.stride);
  if (status != dnnl_success)
    throw Error("oneDNN failed to multiply matrices: status " + std::to_string(status));
}

}  // namespace outrigger::nn::cpu::onednn
