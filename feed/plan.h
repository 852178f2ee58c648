#pragma once

#include <cstdint>
#include <string>

#include "feed/messages.h"

namespace outrigger::feed {

/// The version of a stem in which nothing trains: it never changes.
inline constexpr uint64_t kFrozenStem = UINT64_MAX;

/// How the work of a step is divided. Numbered; the number only grows. A step's plan is fixed when
/// it is drawn.
struct Plan {
  uint64_t number = 0;
  int32_t cut = 0;  // layers before the cut
  std::string cut_name = "Input";
  uint32_t stems_away =
      0;  // k of the step's M micro-batches have their stem run by workers; 0 where cut is 0
  bool stem_trains = false;      // whether gradients come back over the cut
  uint64_t stem_parameters = 0;  // floats of the parameter arena that lie before the cut
  uint64_t stem_buffers = 0;
  WireFormat activations = WireFormat::kFloat32;
  WireFormat gradients = WireFormat::kFloat32;

  /// Micro-batches cut at 0 take the lowest indexes: their pixels are there when the step starts.
  int32_t cut_of(uint32_t index, uint32_t micro_batches) const {
    return index + stems_away >= micro_batches ? cut : 0;
  }
};

}  // namespace outrigger::feed
