#include "feed/latency.h"

#include <algorithm>

namespace outrigger::feed {

void LatencyWindow::add(Duration duration) {
  durations_[next_] = duration;
  next_ = (next_ + 1) % durations_.size();
  count_ = std::min(count_ + 1, durations_.size());
}

Duration LatencyWindow::percentile95() const {
  if (count_ == 0) return Duration{0};
  auto sorted = durations_;
  const size_t rank = (count_ * 95 + 99) / 100 - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(rank),
                   sorted.begin() + static_cast<ptrdiff_t>(count_));
  return sorted[rank];
}

}  // namespace outrigger::feed
