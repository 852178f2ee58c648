#include "training_agreement.h"

#include <gtest/gtest.h>

#include "nn/reference/backend.h"

namespace outrigger::nn::testing {
namespace {

TEST(TrainingAgreement, TheReferenceTrainsLenet5AsPyTorchDoes) {
  expect_training_as_pytorchs(*make_reference_backend(), "lenet5");
}

}  // namespace
}  // namespace outrigger::nn::testing
