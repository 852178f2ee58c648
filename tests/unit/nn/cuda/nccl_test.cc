#include <gtest/gtest.h>

#include "nn/cuda/device/nccl_version.h"

namespace outrigger::nn::cuda {
namespace {

// NCCL loads where there is no GPU and no driver; only its communicators need them.
TEST(NcclLibrary, IsFoundAndNewEnough) {
  std::string why;
  EXPECT_GE(nccl_version(why), 22700) << why;
  EXPECT_EQ(why, "");
}

}  // namespace
}  // namespace outrigger::nn::cuda
