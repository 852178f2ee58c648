#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "api/exit_codes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/random.h"
#include "worker/session.h"

namespace outrigger::worker {

/// How a worker comes back to its server: after waits that grow from a quarter of a second to 10 s,
/// with jitter so that many workers do not come at once; and not after the fifth refusal in a row,
/// since a server may be restarting as another release, or with a new token.
class Rejoining {
 public:
  explicit Rejoining(uint64_t seed) : random_(seed, RandomUse::kBackOff, seed) {}
  /// With waits that no other worker has.
  Rejoining() : Rejoining(drawn_seed()) {}

  /// Waits begin anew only behind a session that had work: one that is sent away each time comes
  /// seldomer each time. Throws as refused() does.
  void session_over(const SessionResult& result) {
    if (result.had_work) wait_ = kFirst;
    if (result.end == SessionEnd::kRefused)
      refused("the server does not take this worker: " + result.reason);
    else if (result.end != SessionEnd::kLinkLost || result.had_work)
      refusals_ = 0;  // of a link that was lost at once nobody knows why
  }
  /// Throws api::Failure with JoinRefused where that is enough.
  void refused(const std::string& why) {
    constexpr int kMost = 5;
    if (++refusals_ >= kMost) throw api::Failure(api::ExitCode::kJoinRefused, why);
  }
  Duration next_wait() {
    const auto jittered = std::chrono::duration_cast<Duration>(
        wait_ * (0.5 + static_cast<double>(random_.uniform())));
    wait_ = std::min<Duration>(wait_ * 2, kLongest);
    return jittered;
  }

 private:
  static uint64_t drawn_seed() {
    uint64_t seed = 0;
    std::memcpy(&seed, random_bytes(sizeof seed).data(), sizeof seed);
    return seed;
  }

  static constexpr Duration kFirst = std::chrono::milliseconds(250);
  static constexpr Duration kLongest = std::chrono::seconds(10);
  RandomStream random_;
  Duration wait_ = kFirst;
  int refusals_ = 0;
};

}  // namespace outrigger::worker
