#include "operator/condition_types.h"

#include <algorithm>
#include <array>

namespace outrigger::controller {
namespace {

constexpr std::array<std::string_view, 5> kUsual{"PodScheduled", "PodReadyToStartContainers",
                                                 "Initialized", "ContainersReady", "Ready"};

// Its bit; 0 for any other.
uint8_t bit_of(std::string_view type) {
  const auto found = std::find(kUsual.begin(), kUsual.end(), type);
  return found == kUsual.end() ? uint8_t{0} : static_cast<uint8_t>(1U << (found - kUsual.begin()));
}

}  // namespace

void ConditionTypes::insert(std::string_view type) {
  if (contains(type)) return;
  if (const uint8_t bit = bit_of(type)) {
    usual_ |= bit;
  } else {
    others_.emplace_back(type);
  }
}

bool ConditionTypes::contains(std::string_view type) const {
  if (const uint8_t bit = bit_of(type)) return (usual_ & bit) != 0;
  return std::find(others_.begin(), others_.end(), type) != others_.end();
}

bool ConditionTypes::contains_any_of(const std::vector<std::string>& types) const {
  return std::any_of(types.begin(), types.end(),
                     [&](const std::string& type) { return contains(type); });
}

}  // namespace outrigger::controller
