#include "nn/cuda/device/check.h"

#include <string>

#include "nn/cuda/errors.h"

namespace outrigger::nn::cuda {
namespace {

struct Failure {
  const char* library;
  const char* text;
  bool of_memory;
};

[[noreturn]] void fail(const Failure& failure, const char* what, const char* file, int line) {
  const std::string text = std::string(what) + " failed: " + failure.library + " says \"" +
                           failure.text + "\" (" + file + ":" + std::to_string(line) + ")";
  if (failure.of_memory) throw OutOfDeviceMemory("the device's memory is too small: " + text);
  throw DeviceError(text);
}

}  // namespace

void check(cudaError_t status, const char* what, const char* file, int line) {
  if (status == cudaSuccess) return;
  const bool of_memory = status == cudaErrorMemoryAllocation;
  if (of_memory) static_cast<void>(cudaGetLastError());  // else the next launch would report it
  fail({"CUDA", cudaGetErrorString(status), of_memory}, what, file, line);
}
void check(cublasStatus_t status, const char* what, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail({"cuBLAS", cublasGetStatusString(status), status == CUBLAS_STATUS_ALLOC_FAILED}, what, file,
       line);
}
void check(cudnnStatus_t status, const char* what, const char* file, int line) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const bool of_memory = status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                         status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  fail({"cuDNN", cudnnGetErrorString(status), of_memory}, what, file, line);
}

}  // namespace outrigger::nn::cuda
