#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/hash.h"
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

/// What ranks must have in common before the first step, or they would silently train different
/// models.
struct Start {
  uint64_t step = 0;
  uint64_t total_steps = 0;
  uint32_t samples = 0;
  Sha256 data{};  // of those samples (data::Dataset::fingerprint)
};

/// Ranks of one job change course together: between the same two steps, and to the same plan.
class Agreement {
 public:
  /// `reducer` may be null: one rank, whose wishes are what is done. Must outlive this.
  explicit Agreement(training::Reducer* reducer) : reducer_(reducer) {}

  /// Waits for all ranks, however long the first one lets them (KeepWaiting). What anyone has to
  /// say of a stop or of broken samples is everyone's; all else is the first rank's. Of a plan
  /// number, cut, share and wire formats travel (complete_plan has the rest).
  Wishes settle(const Wishes& mine);
  /// From now on this rank wishes to stop, also while it waits in settle(). Thread-safe.
  void wish_stop() { stop_ = true; }
  /// How often the first rank has told this one to wait on. Thread-safe.
  uint64_t waits() const { return waits_; }
  /// What every rank has to tell, in their order; all call it between the same two steps. Only of
  /// several ranks.
  std::vector<std::vector<float>> gather(std::span<const float> mine);
  /// Imposes on each the least of the instruction sets that they would compute with; all call it
  /// before the first program is compiled.
  void agree_on_instruction_set();
  /// Throws IoError where another rank starts otherwise: one may have seen a file later than the
  /// others.
  void check_start(const Start& mine);

 private:
  training::Reducer* const reducer_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> waits_{0};
};

/// What the first rank does alone, as an evaluation, may take longer than ranks wait for each other
/// in one call. While this lives the others, which are in settle() or come there, are told every so
/// often to wait on, by a thread of its own: nobody else uses the reducer meanwhile.
class KeepWaiting {
 public:
  /// `interrupt`: called on that thread once another rank wishes to stop or is lost, of which the
  /// next settle() tells more. `reducer` must outlive this.
  KeepWaiting(training::Reducer& reducer, Duration every, std::function<void()> interrupt);

 private:
  void loop(const std::stop_token& over);

  training::Reducer& reducer_;
  const Duration every_;
  const std::function<void()> interrupt_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace outrigger::gpu_server
