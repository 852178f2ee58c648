#include "kube/control/token_bucket.h"

#include <algorithm>

namespace outrigger::kube {
namespace {

using Seconds = std::chrono::duration<double>;

}  // namespace

TokenBucket::TokenBucket(Options options, TimePoint now)
    : options_(options), last_(now), tokens_(options.burst) {}

double TokenBucket::tokens_at(TimePoint now) const {
  return std::min(options_.burst, tokens_ + Seconds(now - last_).count() * options_.per_second);
}

void TokenBucket::refill(TimePoint now) {
  tokens_ = tokens_at(now);
  last_ = now;
}

bool TokenBucket::try_take(TimePoint now) {
  refill(now);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

Duration TokenBucket::take(TimePoint now) {
  refill(now);
  tokens_ -= 1;
  if (tokens_ >= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(Seconds(-tokens_ / options_.per_second));
}

bool TokenBucket::full(TimePoint now) const { return tokens_at(now) >= options_.burst; }

}  // namespace outrigger::kube
