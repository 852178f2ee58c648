#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "feed/messages.h"

namespace outrigger::feed {

/// When a worker asks for the leases that it has room for. The messages of a lease take as long as
/// 0.05 ms of work at either end: one that is done in an instant lets its room wait for the next
/// one's, as long as there is more than half of what was asked for to do. What takes its time, or
/// leaves little to do, as where the link is slow to answer, asks at once.
class Room {
 public:
  /// `leases`: how many it has room for. `at_once`: how many it asks for with one message, at most.
  Room(uint32_t leases, uint32_t at_once) : leases_(leases), at_once_(at_once) {}

  /// A lease has come that takes room.
  void take() { ++taken_; }
  /// One that took so many seconds has given its room back.
  std::optional<Pull> give_back(double seconds) {
    constexpr double kInstant = 2e-3;
    --taken_;
    ++free_;
    if (free_ < at_once_ && seconds < kInstant && 2 * taken_ > leases_) return std::nullopt;
    return ask();
  }
  /// For what waits: there is nothing to do.
  std::optional<Pull> ask() {
    if (free_ == 0) return std::nullopt;
    const Pull pull{free_};
    free_ = 0;
    return pull;
  }

 private:
  const uint32_t leases_;
  const uint32_t at_once_;
  uint32_t taken_ = 0;
  uint32_t free_ = 0;  // not asked for yet
};

/// How many leases a worker behind a link has room for, besides the stems that wait for a gradient,
/// where its threads are few.
inline constexpr uint32_t kLeasesInHand = 4;

/// The same with so many threads, or cores of which a part is a quota's. Photos take from one to
/// ten times as long as others, and the last of a lease keeps the next from coming: with four
/// samples in hand for each, the other threads go on meanwhile (bench/data/worker_bench).
inline uint32_t leases_in_hand(double threads, int64_t micro_batch) {
  constexpr double kSamplesAThread = 4;
  constexpr double kMost = 1024;
  const double samples = kSamplesAThread * std::ceil(threads);
  const double leases = std::ceil(samples / static_cast<double>(micro_batch));
  return static_cast<uint32_t>(std::clamp<double>(leases, kLeasesInHand, kMost));
}

/// Bytes that such a worker has for the job, reckoned as one's that has room for kLeasesInHand:
/// pixels of its further leases are taken off. `pixels`: bytes of a micro-batch's.
constexpr double memory_beside(double memory, uint32_t leases, double pixels) {
  return std::max(0.0, memory - (std::max(leases, kLeasesInHand) - kLeasesInHand) * pixels);
}
/// The other way round.
constexpr double memory_with(double memory, uint32_t leases, double pixels) {
  return memory + (std::max(leases, kLeasesInHand) - kLeasesInHand) * pixels;
}

/// And how many leases it asks for at once.
inline constexpr uint32_t kAskedAtOnce = 2;

}  // namespace outrigger::feed
