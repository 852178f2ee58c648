#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace outrigger::feed {

/// What the server's device waits for.
enum class StallCause : uint8_t {
  kRead,       // bytes from the disk or the network
  kDecode,     // pixels
  kStem,       // a stem's pass on a worker
  kLink,       // tensors on the wire
  kWeights,    // new weights on their way to a stem
  kOptimizer,  // the step's end: sums, clipping, optimizer, commit
  kRanks,      // other ranks, until all have added up what they have
};
inline constexpr size_t kStallCauses = 7;
/// The first ones: what workers and links are to bring.
inline constexpr size_t kInputCauses = static_cast<size_t>(StallCause::kOptimizer);
const char* to_string(StallCause cause);  // "Read", "Decode", …

/// Seconds by cause.
using StallTimes = std::array<double, kStallCauses>;
inline double& of(StallTimes& times, StallCause cause) { return times[static_cast<size_t>(cause)]; }
inline double of(const StallTimes& times, StallCause cause) {
  return times[static_cast<size_t>(cause)];
}
double total(const StallTimes& times);

/// How a result came about that the device has waited for; seconds.
struct Delivery {
  double read = 0;
  double decode = 0;
  double stem = 0;  // the pass that was waited for, forward or backward
  double link = 0;  // on the wire, there and back
  double weights = 0;
  /// Could not begin before this step's weights or gradient were there; else it ran ahead, and the
  /// device waits because the slowest stage brings too few.
  bool in_step = false;
};

/// Adds a wait of so many seconds to its causes. Work that ran ahead: all to its slowest stage.
/// Work inside the step: backwards from the moment it was there, link, stem and weights, as long as
/// each took; what is left, when the worker was busy with others, to the stem.
void add_wait(double seconds, const Delivery& delivery, StallTimes& times);

}  // namespace outrigger::feed
