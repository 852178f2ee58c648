#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "training/planner/model/costs.h"

namespace outrigger::training {

/// A worker with its link, while a step is laid out. Times count from the step's beginning.
struct Lane {
  const WorkerRates* rates = nullptr;
  bool own = false;      // the server's own worker: there is no link
  bool able = true;      // to run the plan's stems
  double free = 0;       // its cores
  double up_free = 0;    // the link towards the server
  double down_free = 0;  // and back
  double stems = 0;      // seconds its cores spend on stems
  double up = 0;         // seconds its link is taken towards the server, pixels not counted
  double down = 0;       // and back
  uint32_t decodes = 0;  // micro-batches that it must decode itself
};

/// A step laid out over device, workers and links as if all pixels were there: list scheduling
/// (Graham, 1969) in the order of the real step. Stems that train are given to workers one by one;
/// frozen ones run ahead, so only the device's part of them is laid out. A server's own worker with
/// cores of its own takes stems from when the device waits. References must outlive this.
class StepSchedule {
 public:
  StepSchedule(const JobCosts& job, const ServerRates& server, std::span<const WorkerRates> workers,
               const Choice& choice);
  StepSchedule(const StepSchedule&) = delete;
  StepSchedule& operator=(const StepSchedule&) = delete;

  /// Whether anybody can run the stems; the rest says nothing where not.
  bool possible() const;
  /// Of the remote workers.
  std::span<const Lane> lanes() const { return std::span(lanes_).first(lanes_.size() - 1); }
  /// Seconds that the server's own worker spends on stems and their pixels.
  double own_stems() const { return lanes_.back().stems; }
  /// How many leases of stems remote workers hold at once.
  size_t stems_in_hand() const;
  uint32_t away() const { return away_; }
  /// There are stems away in which nothing trains.
  bool frozen() const { return frozen_; }
  double device_busy() const { return device_busy_; }  // seconds, the optimizer among them
  double end() const { return end_; }
  /// Seconds that stems take the server's network card, in its busier direction.
  double card_stems() const { return card_stems_; }

  // Of one micro-batch's stem, with what its link takes of the cores, and of bytes; seconds.
  double forward(const Lane& lane) const {
    const double link = lane.own ? 0 : activations_work(job_, cut_);
    return (cut_.stem_forward + link) / lane.rates->stem_speed;
  }
  /// What the links of stems away take of the server's cores.
  double stem_links() const {
    return away_ * (activations_work(job_, cut_) + gradients_work(job_, cut_));
  }
  double upload(const Lane& lane) const { return cut_.activations / lane.rates->bytes_per_second; }
  double card(double bytes) const { return bytes / server_.bytes_per_second; }

 private:
  struct Away {
    Lane* lane = nullptr;
    double arrives = 0;
  };
  void send_weights();
  void run_stems();
  bool takes_stem(const Lane& lane, uint32_t number) const;
  double arrival(const Lane& lane) const;
  void take_stem(Lane& lane, double arrives);
  double backward(const Lane& lane) const;
  double stem_here() const { return (cut_.stem_here() + cut_.head) / server_.cores; }
  /// Of a stem that is away, with its links where the device's cores are theirs too.
  double head() const {
    const double links = server_.shared ? stem_links() / away_ : 0;
    return (cut_.head + links) / server_.cores;
  }
  /// What the device has done when it needs the first stem that is away.
  double front() const { return stem_here() * (job_.micro_batches - away_ - last_); }
  void run_device();
  void run_backward(Lane& lane);

  const JobCosts& job_;
  const ServerRates& server_;
  const CutCosts& cut_;
  const uint32_t away_;
  const uint32_t last_;  // of the others so many come behind them
  const bool ahead_;     // forward passes need not wait for this step's weights
  const bool frozen_;
  const WorkerRates own_rates_;
  std::vector<Lane> lanes_;  // the server's own worker last
  std::vector<Away> stems_;
  double card_up_ = 0;  // the server's network card, when it has sent or taken what is known
  double card_down_ = 0;
  double card_stems_ = 0;
  double device_free_ = 0;
  double device_busy_ = 0;
  double last_gradient_ = 0;
  double end_ = 0;
};

}  // namespace outrigger::training
