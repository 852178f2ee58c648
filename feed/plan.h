#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "feed/messages.h"

namespace outrigger::feed {

/// The version of a stem in which nothing trains: it never changes.
inline constexpr uint64_t kFrozenStem = UINT64_MAX;

/// How many steps beyond the present one are drawn: so many that each of the remote workers can
/// have two of their micro-batches in hand, or a slow one would hold up every step that it has a
/// part in; at least one, and four at most, since pixels wait in memory.
inline uint32_t steps_ahead(size_t workers, uint32_t micro_batches) {
  constexpr size_t kMost = 4;
  const size_t wanted = (2 * workers + micro_batches - 1) / micro_batches;
  return static_cast<uint32_t>(std::clamp<size_t>(wanted, 1, kMost));
}

/// How the work of a step is divided. Numbered; the number only grows. A step's plan is fixed when
/// it is drawn.
struct Plan {
  uint64_t number = 0;
  int32_t cut = 0;  // layers before the cut
  std::string cut_name = "Input";
  uint32_t stems_away =
      0;  // k of the step's M micro-batches have their stem run by workers; 0 where cut is 0
  /// Of how many micro-batches at cut 0 the server's own worker makes the pixels; workers make
  /// those of the others.
  uint32_t local_inputs = 0;
  bool stem_trains = false;      // whether gradients come back over the cut
  uint64_t stem_parameters = 0;  // floats of the parameter arena that lie before the cut
  uint64_t stem_buffers = 0;
  WireFormat activations = WireFormat::kFloat32;
  WireFormat gradients = WireFormat::kFloat32;

  /// Micro-batches cut at 0 take the lowest indexes: their pixels are there when the step starts.
  int32_t cut_of(uint32_t index, uint32_t micro_batches) const {
    return index + stems_away >= micro_batches ? cut : 0;
  }
  /// The lowest indexes again: what the server makes itself is there first.
  bool is_local(uint32_t index) const { return index < local_inputs; }
  bool operator==(const Plan&) const = default;
  /// Of the pixels that a step needs.
  uint32_t local_percent(uint32_t micro_batches) const {
    return local_inputs == 0 ? 0 : 100 * local_inputs / (micro_batches - stems_away);
  }
};

}  // namespace outrigger::feed
