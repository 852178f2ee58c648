#include "kube/client/retry.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "common/random.h"

namespace outrigger::kube {

Duration BackOff::after(int failures, double chance) const {
  Duration wait = first;
  for (int i = 1; i < failures && wait < most; ++i) wait *= 2;
  wait = std::min(wait, most);
  return wait - std::chrono::duration_cast<Duration>(wait * (chance / 2));
}

double random_chance() {
  static const uint64_t seed = (uint64_t{std::random_device()()} << 32) | std::random_device()();
  static std::atomic<uint64_t> count = 0;
  return RandomStream(seed, RandomUse::kBackOff, count.fetch_add(1)).uniform();
}

std::optional<Duration> RetryPolicy::wait(const Failure& failure, int tries_made,
                                          double chance) const {
  if (tries_made >= tries) return std::nullopt;
  const bool again =
      failure.code == 429 || (failure.idempotent && (failure.code == 0 || failure.code / 100 == 5));
  if (!again) return std::nullopt;
  const Duration own = back_off.after(tries_made, chance);
  if (!failure.retry_after) return own;
  if (*failure.retry_after > longest_wait) return std::nullopt;
  // The server's wait and a little more, lest all come back at its end.
  return std::max<Duration>(own, *failure.retry_after + own);
}

}  // namespace outrigger::kube
