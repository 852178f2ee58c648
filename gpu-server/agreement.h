#pragma once

#include <optional>

#include "feed/plan.h"
#include "training/trainer.h"

namespace outrigger::gpu_server {

/// What a rank wishes between two steps.
struct Wishes {
  bool stop = false;                 // a request from outside
  bool stop_early = false;           // no gain for a while
  std::optional<feed::Plan> plan{};  // for the steps that are not drawn yet
};

/// Ranks of one job change course together: between the same two steps, and to the same plan.
class Agreement {
 public:
  /// `reducer` may be null: one rank, whose wishes are what is done. Must outlive this.
  explicit Agreement(training::Reducer* reducer) : reducer_(reducer) {}

  /// Waits for all ranks. A stop that anyone wishes is everyone's; the plan is the first rank's, of
  /// which number, cut, share and wire formats travel (complete_plan has the rest).
  Wishes settle(const Wishes& mine);
  /// Throws IoError where ranks start from different steps: they would silently train different
  /// models.
  void check_start(uint64_t step);

 private:
  training::Reducer* const reducer_;
};

}  // namespace outrigger::gpu_server
