#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "feed/messages.h"
#include "feed/stem_memory.h"

namespace outrigger::feed {

/// The version of a stem in which nothing trains: it never changes.
inline constexpr uint64_t kFrozenStem = UINT64_MAX;

/// How many steps beyond the present one are drawn: so many that each of the remote workers can
/// have half of the leases that it has room for in hand, or a slow one would hold up every step
/// that it has a part in; at least one, and four at most, since pixels wait in memory. `leases`:
/// those that all of them have room for.
inline uint32_t steps_ahead(size_t leases, uint32_t micro_batches) {
  constexpr size_t kMost = 4;
  const size_t half = leases / 2;
  const size_t wanted = (half + micro_batches - 1) / micro_batches;
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
  /// Of the others so many come behind them, and hide the way back of the last gradients; 0 where
  /// none come back.
  uint32_t here_last = 0;
  /// Of how many micro-batches at cut 0 the server's own worker makes the pixels; workers make
  /// those of the others.
  uint32_t local_inputs = 0;
  bool stem_trains = false;      // whether gradients come back over the cut
  uint64_t stem_parameters = 0;  // floats of the parameter arena that lie before the cut
  uint64_t stem_buffers = 0;
  StemMemory stem_memory;   // zeros: any worker may have stems
  double stem_percent = 0;  // of the network's multiply-adds, that lie before the cut
  WireFormat activations = WireFormat::kFloat32;
  WireFormat gradients = WireFormat::kFloat32;

  /// The first index whose stem is away: those before it have their pixels when the step starts,
  /// and hide the way there.
  uint32_t first_away(uint32_t micro_batches) const {
    return micro_batches - stems_away - here_last;
  }
  int32_t cut_of(uint32_t index, uint32_t micro_batches) const {
    const uint32_t first = first_away(micro_batches);
    return index >= first && index < first + stems_away ? cut : 0;
  }
  /// Of those at cut 0 the first: what the server makes itself is there first.
  bool is_local(uint32_t index, uint32_t micro_batches) const {
    if (cut_of(index, micro_batches) > 0) return false;
    const uint32_t before = index < first_away(micro_batches) ? index : index - stems_away;
    return before < local_inputs;
  }
  bool operator==(const Plan&) const = default;
  /// Of the network's multiply-adds, that the server does; other work is not in it.
  double server_percent(uint32_t micro_batches) const {
    return 100 - stem_percent * stems_away / micro_batches;
  }
  /// Of the pixels that a step needs.
  uint32_t local_percent(uint32_t micro_batches) const {
    return local_inputs == 0 ? 0 : 100 * local_inputs / (micro_batches - stems_away);
  }
};

/// How many micro-batches of a step best come behind those whose trained stems are away: half of
/// what is left, since a way there takes about as long as one back; of each the server keeps the
/// stem's gradients by themselves, so no more than two.
inline uint32_t best_here_last(uint32_t micro_batches, uint32_t stems_away) {
  constexpr uint32_t kMost = 2;
  return stems_away == 0 ? 0 : std::min(kMost, (micro_batches - stems_away + 1) / 2);
}

}  // namespace outrigger::feed
