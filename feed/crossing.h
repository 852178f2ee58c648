#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "common/tensor.h"
#include "feed/messages.h"

namespace outrigger::feed {

/// What a forward result must be at a cut.
struct Crossing {
  ElementType type = ElementType::kUint8;
  Shape sample;           // {H, W, C} or {F}
  size_t statistics = 0;  // floats of the stem's norms
};
/// By layers before the cut; 0: pixels.
using Crossings = std::map<int32_t, Crossing>;

/// Throws InvalidInput that names the result and what was wanted unless it is of so many samples
/// and what crosses at the cut. Activations may also be whole numbers with their scales, where the
/// server keeps them so.
void check_crossing(const MicroBatch& result, const Crossing& wanted, size_t samples);

}  // namespace outrigger::feed
