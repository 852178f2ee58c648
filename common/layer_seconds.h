#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace outrigger {

/// What a layer of a network took in a pass over a micro-batch: seconds of one core; 0: not timed.
struct LayerSeconds {
  float forward = 0;
  float backward = 0;
};

/// Moving averages of layers from `first` on follow what they took last; what was not timed stays.
void follow(std::vector<LayerSeconds>& means, std::span<const LayerSeconds> newest,
            size_t first = 0);

}  // namespace outrigger
