#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace outrigger::controller {

/// The types of a pod's conditions that are True. Those that every kubelet sets take no memory of
/// their own: there are thousands of pods.
class ConditionTypes {
 public:
  void insert(std::string_view type);
  bool contains(std::string_view type) const;
  bool contains_any_of(const std::vector<std::string>& types) const;
  bool operator==(const ConditionTypes&) const = default;

 private:
  uint8_t usual_ = 0;  // a bit for each of the usual ones
  std::vector<std::string> others_;
};

}  // namespace outrigger::controller
