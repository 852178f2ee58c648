#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/random.h"
#include "training/simulator/cluster.h"

/// Jobs and clusters drawn from a seed, for the benchmark in virtual time.
namespace outrigger::training {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed, RandomUse::kSyntheticData, 3) {}
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_.uniform());
  }
  /// Evenly spread in its logarithm.
  double magnitude(double low, double high) {
    return std::exp(between(std::log(low), std::log(high)));
  }
  bool chance(double probability) { return between(0, 1) < probability; }
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[random_.below(static_cast<uint32_t>(values.size()))];
  }

 private:
  RandomStream random_;
};

/// A network whose cuts hold many times the bytes of its pixels at first and fewer behind every
/// stride, as real ones do; some with a frozen stem, some with staleness 1.
JobCosts draw_job(Draw& draw);
/// One to eight workers of one to four cores, links from 10 Mbit/s to 20 Gbit/s; a server whose
/// device is its cores, or faster than them.
SimulatedCluster draw_cluster(Draw& draw, const JobCosts& job);
/// All plans that there are: every cut with every number of stems away, and of the other inputs
/// every number made by the server itself.
std::vector<Choice> all_choices(const JobCosts& job);

}  // namespace outrigger::training
