#include <gtest/gtest.h>

#include "nn/cpu/backend.h"
#include "training_agreement.h"

namespace outrigger::nn::testing {
namespace {

class CpuTrainingAgreement : public ::testing::TestWithParam<const char*> {};

TEST_P(CpuTrainingAgreement, TrainsAsPyTorchDoes) {
  expect_training_as_pytorchs(*cpu::make_cpu_backend(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Models, CpuTrainingAgreement,
                         ::testing::Values("lenet5", "resnet18", "iresnet18"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace outrigger::nn::testing
