#include "common/layer_seconds.h"

#include <algorithm>

namespace outrigger {
namespace {

constexpr float kNewest = 0.25;

void follow(float& mean, float newest) {
  if (newest > 0) mean += (mean > 0 ? kNewest : 1) * (newest - mean);
}

}  // namespace

void follow(std::vector<LayerSeconds>& means, std::span<const LayerSeconds> newest, size_t first) {
  means.resize(std::max(means.size(), first + newest.size()));
  for (size_t i = 0; i < newest.size(); ++i) {
    follow(means[first + i].forward, newest[i].forward);
    follow(means[first + i].backward, newest[i].backward);
  }
}

}  // namespace outrigger
