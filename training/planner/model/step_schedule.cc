#include "training/planner/model/step_schedule.h"

#include <algorithm>

#include "training/planner/model/memory.h"

namespace outrigger::training {

StepSchedule::StepSchedule(const JobCosts& job, const ServerRates& server,
                           std::span<const WorkerRates> workers, const Choice& choice)
    : job_(job),
      server_(server),
      cut_(job.cuts[choice.cut]),
      away_(choice.away),
      last_(here_last(job, choice)),
      ahead_(!cut_.trains || job.staleness > 0),
      frozen_(away_ > 0 && !cut_.trains),
      own_rates_{.stem_speed = server.own_cores * server.stem_part, .decode = server.decode} {
  const double needs = memory_for_stems(job, workers, choice);
  for (const WorkerRates& one : workers)
    lanes_.push_back({.rates = &one, .able = is_given_stems(one, needs)});
  lanes_.push_back({.rates = &own_rates_, .own = true});
  if (!possible()) return;
  send_weights();
  if (!frozen_) run_stems();
  run_device();
  const double optimizer = job_.optimizer / server_.cores;
  device_busy_ += optimizer;
  end_ = std::max(device_free_, last_gradient_) + optimizer;
}

bool StepSchedule::possible() const {
  return away_ == 0 || std::ranges::any_of(lanes(), [](const Lane& lane) { return lane.able; });
}

size_t StepSchedule::stems_in_hand() const {
  size_t leases = 0;
  for (const Lane& lane : lanes()) leases += lane.able ? lane.rates->leases : 0;
  return leases;
}

/// The server's own worker helps out while the device waits: with what does not run ahead, once
/// others have all that they take at once, and where it does not take the device's cores.
bool StepSchedule::takes_stem(const Lane& lane, uint32_t number) const {
  if (!lane.own) return lane.able;
  return !server_.shared && !ahead_ && number >= stems_in_hand();
}

void StepSchedule::send_weights() {
  if (away_ == 0 || !cut_.trains) return;
  uint32_t most = away_;  // of them are given a stem
  for (Lane& lane : lanes_) {
    if (lane.own || !lane.able) continue;
    const double takes = cut_.weights / lane.rates->bytes_per_second;
    lane.down += takes;
    if (most > 0) card_down_ += cut_.weights / server_.bytes_per_second;
    most -= std::min(most, 1u);
    if (ahead_) continue;
    lane.down_free = std::max(takes, card_down_);
    lane.free = lane.down_free + lane.rates->latency;
  }
}

void StepSchedule::run_stems() {
  lanes_.back().free = front();
  for (uint32_t i = 0; i < away_; ++i) {
    Lane* best = nullptr;
    double first = 0;
    for (Lane& lane : lanes_) {
      if (!takes_stem(lane, i)) continue;
      const double arrives = arrival(lane);
      if (best == nullptr || arrives < first) {
        first = arrives;
        best = &lane;
      }
    }
    take_stem(*best, first);
  }
  // Weights go to those who are given a stem.
  for (Lane& lane : lanes_) {
    if (lane.decodes == 0) lane.down = 0;
  }
}

double StepSchedule::arrival(const Lane& lane) const {
  if (lane.own) return lane.free + lane.rates->decode + forward(lane);
  const double ready = lane.free + forward(lane);
  const double sent = std::max(ready, lane.up_free) + upload(lane);
  return std::max(sent, std::max(ready, card_up_) + card(cut_.activations)) + lane.rates->latency;
}

void StepSchedule::take_stem(Lane& lane, double arrives) {
  ++lane.decodes;
  stems_.push_back({&lane, ahead_ ? 0 : arrives});
  if (lane.own) {
    lane.stems += arrives - lane.free;
    lane.free = arrives;
    return;
  }
  lane.free += forward(lane);
  lane.up_free = arrives - lane.rates->latency;
  card_up_ = std::max(card_up_ + card(cut_.activations), arrives - lane.rates->latency);
  card_stems_ += card(cut_.activations + (cut_.trains ? cut_.weights : 0));
  lane.stems += forward(lane);
  lane.up += upload(lane);
}

void StepSchedule::run_device() {
  device_free_ = device_busy_ = front();
  if (ahead_) {
    for (Lane& lane : lanes_) lane.free = lane.up_free = lane.down_free = 0;
    card_up_ = card_down_ = 0;
  }
  if (frozen_) {
    device_free_ += head() * away_;
    device_busy_ = device_free_;
  }
  for (Away& stem : stems_) {
    device_free_ = std::max(device_free_, stem.arrives) + head();
    device_busy_ += head();
    if (cut_.trains) run_backward(*stem.lane);
  }
  device_free_ += stem_here() * last_;
  device_busy_ += stem_here() * last_;
  if (!cut_.trains) return;
  for (Lane& lane : lanes_) {  // one stem gradient a micro-batch
    if (lane.decodes > 0)
      last_gradient_ = std::max(last_gradient_, lane.up_free + lane.rates->latency);
  }
}

double StepSchedule::backward(const Lane& lane) const {
  const double link = lane.own ? 0 : gradients_work(job_, cut_);
  return (cut_.stem_backward + link) / lane.rates->stem_speed;
}

void StepSchedule::run_backward(Lane& lane) {
  lane.stems += backward(lane);
  if (lane.own) {
    lane.free = lane.up_free = std::max(lane.free, device_free_) + backward(lane);
    return;
  }
  const double download = cut_.gradients / lane.rates->bytes_per_second;
  card_down_ = std::max(card_down_, device_free_) + card(cut_.gradients);
  lane.down_free = std::max(std::max(lane.down_free, device_free_) + download, card_down_);
  lane.free = std::max(lane.free, lane.down_free + lane.rates->latency) + backward(lane);
  const double sends = cut_.weights / lane.rates->bytes_per_second;
  card_up_ = std::max(card_up_, lane.free) + card(cut_.weights);
  lane.up_free = std::max(std::max(lane.up_free, lane.free) + sends, card_up_);
  lane.down += download;
  lane.up += sends;
}

}  // namespace outrigger::training
