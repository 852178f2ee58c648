#pragma once

#include <string>
#include <vector>

#include "nn/graph.h"

namespace outrigger::nn {

/// The output shape of an operation over inputs of these shapes. Throws InvalidInput that names
/// `layer` where the operation does not fit: a wrong number or kind of inputs, an impossible
/// option, an input smaller than a kernel.
Shape infer_shape(const std::string& layer, const Operation& operation,
                  const std::vector<Shape>& inputs);

/// An operation's name for messages: "Convolution".
const char* operation_name(const Operation& operation);

}  // namespace outrigger::nn
