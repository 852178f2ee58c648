#include "gpu-server/device/shared_cores.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

TEST(SharedCores, TheDeviceWorkedForWhatTheWorkerDidNotHave) {
  EXPECT_DOUBLE_EQ(busy_without(10, 6, 4), 6);
  EXPECT_DOUBLE_EQ(busy_without(10, 5, 3), 7) << "others on the machine slow the device down";
  EXPECT_DOUBLE_EQ(busy_without(10, 9, 8), 9) << "there were cores for both";
  EXPECT_DOUBLE_EQ(busy_without(10, 6, -1), 10) << "it worked only while the device waited";
  EXPECT_DOUBLE_EQ(busy_without(10, 11, 4), 10) << "never more than by the clock";
}

}  // namespace
}  // namespace outrigger::gpu_server
