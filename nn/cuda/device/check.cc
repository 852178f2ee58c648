#include "nn/cuda/device/check.h"

#include <string>

#include "nn/cuda/errors.h"

namespace outrigger::nn::cuda {
namespace {

[[noreturn]] void fail(const char* library, const char* text, const char* what, const char* file,
                       int line) {
  throw DeviceError(std::string(what) + " failed: " + library + " says \"" + text + "\" (" + file +
                    ":" + std::to_string(line) + ")");
}

}  // namespace

void check(cudaError_t status, const char* what, const char* file, int line) {
  if (status != cudaSuccess) fail("CUDA", cudaGetErrorString(status), what, file, line);
}
void check(cublasStatus_t status, const char* what, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail("cuBLAS", cublasGetStatusString(status), what, file, line);
}
void check(cudnnStatus_t status, const char* what, const char* file, int line) {
  if (status != CUDNN_STATUS_SUCCESS) fail("cuDNN", cudnnGetErrorString(status), what, file, line);
}

}  // namespace outrigger::nn::cuda
