#include "gpu-server/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"
#include "tests/unit/api/sample_job.h"

namespace outrigger::gpu_server {
namespace {

using api::DeviceChoice;
using api::ExitCode;

api::Launch told(DeviceChoice device) {
  api::Launch launch;
  launch.device = device;
  return launch;
}

// How opening a device fails; kDone where it does not.
ExitCode refusal(DeviceChoice device, int gpus) {
  auto job = api::sample_job();
  job.spec.server.gpus = gpus;
  try {
    open_device(told(device), job);
    return ExitCode::kDone;
  } catch (const api::Failure& failure) {
    return failure.code();
  }
}

TEST(WantsGpu, FollowsTheJobUnlessItIsTold) {
  auto job = api::sample_job();
  EXPECT_FALSE(wants_gpu(told(DeviceChoice::kAuto), job));
  EXPECT_TRUE(wants_gpu(told(DeviceChoice::kCuda), job));
  job.spec.server.gpus = 2;
  EXPECT_TRUE(wants_gpu(told(DeviceChoice::kAuto), job));
  EXPECT_FALSE(wants_gpu(told(DeviceChoice::kCpu), job));
}

TEST(OpenDevice, TrainsOnTheCpuWhereNoGpuIsAskedForOrItIsTold) {
  EXPECT_EQ(refusal(DeviceChoice::kAuto, 0), ExitCode::kDone);
  EXPECT_EQ(refusal(DeviceChoice::kCpu, 1), ExitCode::kDone);
}

TEST(OpenDevice, RefusesAGpuInABuildWithoutCuda) {
  if (nn::cuda::is_built()) GTEST_SKIP() << "this build has CUDA";
  EXPECT_EQ(refusal(DeviceChoice::kAuto, 1), ExitCode::kNotSupported);
  EXPECT_EQ(refusal(DeviceChoice::kCuda, 0), ExitCode::kNotSupported);
}

TEST(DeviceErrors, HaveExitCodesThatLaunchersKnow) {
  const auto code_of = [](const std::function<ExitCode()>& work) {
    try {
      return translate_device_errors(work);
    } catch (const api::Failure& failure) {
      return failure.code();
    }
  };
  EXPECT_EQ(code_of([] { return ExitCode::kStopped; }), ExitCode::kStopped);
  EXPECT_EQ(code_of([]() -> ExitCode { throw nn::cuda::OutOfDeviceMemory("full"); }),
            ExitCode::kOutOfMemory);
  EXPECT_EQ(code_of([]() -> ExitCode { throw nn::cuda::RankLost("gone"); }), ExitCode::kPeerLost);
  EXPECT_EQ(code_of([]() -> ExitCode { throw nn::cuda::DeviceError("gone"); }),
            ExitCode::kNoDevice);
}

}  // namespace
}  // namespace outrigger::gpu_server
