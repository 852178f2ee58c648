#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace outrigger::nn::cuda {

/// Throw DeviceError with the library's own text unless all went well, or OutOfDeviceMemory where
/// it says that it has none. `what` says what was tried.
void check(cudaError_t status, const char* what, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());
void check(cublasStatus_t status, const char* what, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());
void check(cudnnStatus_t status, const char* what, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());

}  // namespace outrigger::nn::cuda
