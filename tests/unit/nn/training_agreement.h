#pragma once

#include <string>

#include "nn/program.h"

namespace outrigger::nn::testing {

/// Trains a model for 20 steps from the same weights and on the same batches as
/// tools/make_fixtures.py did with PyTorch (SGD with momentum and weight decay, two micro-batches
/// of four samples a step, batch norm over a micro-batch), and expects every step's loss and the
/// trained weights and running averages to be PyTorch's, within the stored tolerances. Models:
/// lenet5, resnet18, iresnet18 (with ArcFace).
void expect_training_as_pytorchs(const Backend& backend, const std::string& model);

}  // namespace outrigger::nn::testing
