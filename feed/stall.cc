#include "feed/stall.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace outrigger::feed {

const char* to_string(StallCause cause) {
  constexpr std::array<const char*, kStallCauses> kNames = {"Read",    "Decode",    "Stem", "Link",
                                                            "Weights", "Optimizer", "Ranks"};
  return kNames[static_cast<size_t>(cause)];
}

double total(const StallTimes& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

void add_wait(double seconds, const Delivery& delivery, StallTimes& times) {
  if (!delivery.in_step) {
    const std::array<std::pair<double, StallCause>, 4> stages = {
        {{delivery.decode, StallCause::kDecode},
         {delivery.read, StallCause::kRead},
         {delivery.stem, StallCause::kStem},
         {delivery.link, StallCause::kLink}}};
    of(times,
       std::ranges::max_element(stages, {}, [](const auto& s) { return s.first; })->second) +=
        seconds;
    return;
  }
  const auto take = [&](StallCause cause, double took) {
    const double part = std::min(seconds, took);
    of(times, cause) += part;
    seconds -= part;
  };
  take(StallCause::kLink, delivery.link);
  take(StallCause::kStem, delivery.stem);
  take(StallCause::kWeights, delivery.weights);
  of(times, StallCause::kStem) += seconds;
}

}  // namespace outrigger::feed
