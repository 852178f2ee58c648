#pragma once

#include "common/clock.h"

namespace outrigger::kube {

/// Allows bursts and a rate in the long run. A plain value; the caller guards it.
class TokenBucket {
 public:
  struct Options {
    double per_second = 10;
    double burst = 100;
  };
  /// Full at `now`.
  TokenBucket(Options options, TimePoint now);

  /// Takes a token if there is one.
  bool try_take(TimePoint now);
  /// Takes a token, on credit if there is none: how long the taker has to wait for it.
  Duration take(TimePoint now);
  /// Whether it is as full as it can be, so that a fresh one would do as well.
  bool full(TimePoint now) const;

 private:
  double tokens_at(TimePoint now) const;
  void refill(TimePoint now);

  Options options_;
  TimePoint last_;
  double tokens_;
};

}  // namespace outrigger::kube
