#pragma once

#include <optional>
#include <span>
#include <vector>

#include "common/clock.h"
#include "feed/plan.h"
#include "training/trainer/trainer.h"

namespace outrigger::gpu_server {

/// What a rank wishes between two steps.
struct Wishes {
  bool stop = false;                 // a request from outside
  bool stop_early = false;           // no gain for a while
  std::optional<feed::Plan> plan{};  // for the steps that are not drawn yet
  bool hears = false;                // finds plans, and wants to know how the other ranks get on
  Duration progress_deadline{0};     // as the job says now
  bool tells_broken = false;         // has found broken samples that the others do not know of
};

/// Ranks of one job change course together: between the same two steps, and to the same plan.
class Agreement {
 public:
  /// `reducer` may be null: one rank, whose wishes are what is done. Must outlive this.
  explicit Agreement(training::Reducer* reducer) : reducer_(reducer) {}

  /// Waits for all ranks. What anyone has to say of a stop or of broken samples is everyone's; all
  /// else is the first rank's. Of a plan number, cut, share and wire formats travel (complete_plan
  /// has the rest).
  Wishes settle(const Wishes& mine);
  /// What every rank has to tell, in their order; all call it between the same two steps. Only of
  /// several ranks.
  std::vector<std::vector<float>> gather(std::span<const float> mine);
  /// Throws IoError where ranks start from different steps: they would silently train different
  /// models.
  void check_start(uint64_t step);

 private:
  training::Reducer* const reducer_;
};

}  // namespace outrigger::gpu_server
