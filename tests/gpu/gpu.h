#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"

namespace outrigger::nn::testing {

/// The backend on this machine's GPU, opened once for all tests of the process; null where there is
/// none, and `why` says why.
struct Gpu {
  std::unique_ptr<Backend> backend;
  std::string why;
};

inline const Gpu& gpu() {
  static const Gpu opened = [] {
    Gpu gpu;
    try {
      gpu.backend = cuda::make_cuda_backend({.most_pinned = uint64_t{1} << 28});
    } catch (const cuda::NoDevice& error) {
      gpu.why = error.what();
    }
    return gpu;
  }();
  return opened;
}

/// A test that runs on the GPU, or skips with the reason.
class OnGpu : public virtual ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu().backend == nullptr) GTEST_SKIP() << gpu().why;
  }
};

}  // namespace outrigger::nn::testing
