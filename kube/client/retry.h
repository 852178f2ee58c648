#pragma once

#include <chrono>
#include <optional>

#include "common/clock.h"

namespace outrigger::kube {

/// How long to wait after each failure in a row: doubling, with jitter, so that many who failed
/// together do not come back together.
struct BackOff {
  Duration first = std::chrono::milliseconds(100);
  Duration most = std::chrono::seconds(10);

  /// After `failures` >= 1 in a row; `chance` in [0, 1) takes up to half of it away.
  Duration after(int failures, double chance) const;
};

/// Uniform in [0, 1), different in every process: for jitter only. Thread-safe.
double random_chance();

/// When a request is sent again.
struct RetryPolicy {
  /// In all, the first one included.
  int tries = 5;
  BackOff back_off = {};
  /// A server that wants us to wait longer gets its answer handed to the caller.
  std::chrono::seconds longest_wait{30};

  /// What came back, or did not.
  struct Failure {
    int code = 0;  // 0: no answer
    std::optional<std::chrono::seconds> retry_after = std::nullopt;
    /// Whether a second request would do no harm if the first one had been carried out.
    bool idempotent = false;
  };
  /// How long to wait before try number `tries_made` + 1; nothing: do not try again. 429 was not
  /// carried out, so anything may be sent again; after 5xx or no answer only what is idempotent.
  std::optional<Duration> wait(const Failure& failure, int tries_made, double chance) const;
};

}  // namespace outrigger::kube
