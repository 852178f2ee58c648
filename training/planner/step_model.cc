#include "training/planner/step_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace outrigger::training {
namespace {

/// A worker with its link, while a step is scheduled. Times count from the step's beginning.
struct Lane {
  const WorkerRates* rates = nullptr;
  double free = 0;       // its cores
  double up_free = 0;    // the link towards the server
  double down_free = 0;  // and back
  double stems = 0;      // seconds its cores spend on stems
  double link = 0;       // seconds its busier direction is taken, pixels not counted
  uint32_t decodes = 0;  // micro-batches that it must decode itself
};

struct Away {
  Lane* lane = nullptr;
  double arrives = 0;
};

class Step {
 public:
  Step(const JobCosts& job, const ServerRates& server, std::span<const WorkerRates> workers,
       const Choice& choice)
      : job_(job),
        server_(server),
        cut_(job.cuts[choice.cut]),
        away_(choice.away),
        ahead_(!cut_.trains || job.staleness > 0) {
    for (const WorkerRates& one : workers) lanes_.push_back({.rates = &one});
  }

  Prediction run() {
    if (away_ > 0 && !std::ranges::any_of(lanes_, [](const Lane& l) { return l.rates->stems; }))
      return {std::numeric_limits<double>::infinity(), 0, Bound::kStem, 0};
    send_weights();
    run_stems();
    run_device();
    const double optimizer = job_.optimizer / server_.cores;
    device_busy_ += optimizer;
    const double scheduled = std::max(device_free_, last_gradient_) + optimizer;
    const double whole = stretch(scheduled);
    return {whole, device_busy_, bound(scheduled, whole), local_input(whole)};
  }

 private:
  void send_weights() {
    if (away_ == 0 || !cut_.trains) return;
    for (Lane& lane : lanes_) {
      if (!lane.rates->stems) continue;
      const double takes = cut_.weights / lane.rates->bytes_per_second;
      lane.link += takes;
      card_down_ += cut_.weights / server_.bytes_per_second;
      if (ahead_) continue;
      lane.down_free = std::max(takes, card_down_);
      lane.free = lane.down_free + lane.rates->latency;
    }
  }

  void run_stems() {
    for (uint32_t i = 0; i < away_; ++i) {
      Lane* best = nullptr;
      double first = std::numeric_limits<double>::infinity();
      for (Lane& lane : lanes_) {
        if (!lane.rates->stems) continue;
        const double arrives = arrival(lane);
        if (arrives < first) {
          first = arrives;
          best = &lane;
        }
      }
      take_stem(*best, first);
    }
  }

  double forward(const Lane& lane) const { return cut_.stem_forward / lane.rates->stem_speed; }
  double upload(const Lane& lane) const { return cut_.activations / lane.rates->bytes_per_second; }
  double arrival(const Lane& lane) const {
    const double ready = lane.free + forward(lane);
    const double sent = std::max(ready, lane.up_free) + upload(lane);
    return std::max(sent, std::max(ready, card_up_) + card(cut_.activations)) + lane.rates->latency;
  }
  double card(double bytes) const { return bytes / server_.bytes_per_second; }

  void take_stem(Lane& lane, double arrives) {
    lane.free += forward(lane);
    lane.up_free = arrives - lane.rates->latency;
    card_up_ = std::max(card_up_ + card(cut_.activations), arrives - lane.rates->latency);
    card_stems_ += card(cut_.activations + (cut_.trains ? cut_.weights : 0));
    lane.stems += forward(lane);
    lane.link += upload(lane);
    ++lane.decodes;
    stems_.push_back({&lane, ahead_ ? 0 : arrives});
  }

  void run_device() {
    const double here = (cut_.stem_forward + cut_.stem_backward + cut_.head) / server_.cores;
    const double head = cut_.head / server_.cores;
    device_free_ = here * (job_.micro_batches - away_);
    device_busy_ = device_free_;
    if (ahead_) {
      for (Lane& lane : lanes_) lane.free = lane.up_free = lane.down_free = 0;
      card_up_ = card_down_ = 0;
    }
    for (Away& stem : stems_) {
      device_free_ = std::max(device_free_, stem.arrives) + head;
      device_busy_ += head;
      if (cut_.trains) run_backward(*stem.lane);
    }
    if (!cut_.trains) return;
    for (Lane& lane : lanes_) {  // one stem gradient a micro-batch
      if (lane.decodes > 0)
        last_gradient_ = std::max(last_gradient_, lane.up_free + lane.rates->latency);
    }
  }

  void run_backward(Lane& lane) {
    const double download = cut_.gradients / lane.rates->bytes_per_second;
    card_down_ = std::max(card_down_, device_free_) + card(cut_.gradients);
    lane.down_free = std::max(std::max(lane.down_free, device_free_) + download, card_down_);
    const double backward = cut_.stem_backward / lane.rates->stem_speed;
    lane.free = std::max(lane.free, lane.down_free + lane.rates->latency) + backward;
    lane.stems += backward;
    const double upload = cut_.weights / lane.rates->bytes_per_second;
    card_up_ = std::max(card_up_, lane.free) + card(cut_.weights);
    lane.up_free = std::max(std::max(lane.up_free, lane.free) + upload, card_up_);
    lane.link += std::max(download, upload);
  }

  /// How many micro-batches' pixels workers can bring in a step of so many seconds beside
  /// everything else; negative where not even the stems' own can be decoded.
  double brought_in(double seconds) const {
    double total = 0;
    for (const Lane& lane : lanes_) {
      const double own = lane.decodes;
      double can = (seconds - lane.stems) / std::max(lane.rates->decode, 1e-12);
      if (can < own || lane.link > seconds) return -1;
      can -= own;
      const double wire =
          (seconds - lane.link) * lane.rates->bytes_per_second / std::max(job_.pixels, 1.0);
      total += std::min(can, wire);
    }
    if (card_stems_ > seconds) return -1;
    return std::min(total, (seconds - card_stems_) / std::max(card(job_.pixels), 1e-12));
  }

  /// The coordinator leases to remote workers first: with so many that they hold this step and the
  /// next, the local worker gets nothing.
  bool remote_take_all() const {
    constexpr size_t kLeases = 4;  // worker/process.cc
    constexpr size_t kSteps = 2;   // feed::CoordinatorOptions::steps_ahead, and the present one
    return kLeases * lanes_.size() >= kSteps * job_.micro_batches;
  }

  /// How many can be decoded by all; likewise.
  double decoded_in(double seconds) const {
    const double total = brought_in(seconds);
    if (total < 0) return total;
    if (remote_take_all()) return total;
    const double spare = seconds - (server_.shared ? device_busy_ : 0);
    return total + std::max(0.0, spare) / std::max(server_.decode, 1e-12);
  }

  double local_input(double whole) const {
    const double wanted = job_.micro_batches - away_;
    if (wanted == 0 || !std::isfinite(whole)) return 0;
    return std::clamp(1 - brought_in(whole) / wanted, 0.0, 1.0);
  }

  double stretch(double least) const {
    const double wanted = job_.micro_batches - away_;
    if (decoded_in(least) >= wanted) return least;
    double low = least;
    double high = std::max(least, 1e-9);
    constexpr int kMostDoublings = 40;
    for (int i = 0; decoded_in(high) < wanted; ++i) {
      if (i == kMostDoublings) return std::numeric_limits<double>::infinity();
      high *= 2;
    }
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (decoded_in(middle) >= wanted ? high : low) = middle;
    }
    return high;
  }

  /// What keeps workers from bringing more pixels.
  Bound input_bound(double whole) const {
    double decoded = 0;
    double sent = 0;
    for (const Lane& lane : lanes_) {
      decoded += (whole - lane.stems) / std::max(lane.rates->decode, 1e-12);
      sent += (whole - lane.link) * lane.rates->bytes_per_second / std::max(job_.pixels, 1.0);
    }
    sent = std::min(sent, (whole - card_stems_) / std::max(card(job_.pixels), 1e-12));
    return sent < decoded ? Bound::kLink : Bound::kDecode;
  }

  Bound bound(double scheduled, double whole) const {
    constexpr double kNearly = 0.98;
    for (const Lane& lane : lanes_) {
      if (lane.link > kNearly * whole) return Bound::kLink;
    }
    if (card_stems_ > kNearly * whole) return Bound::kLink;
    if (scheduled < kNearly * whole) return input_bound(whole);
    if (device_busy_ > kNearly * whole) return Bound::kDevice;
    double stems = 0;
    double links = 0;
    for (const Lane& lane : lanes_) {
      stems = std::max(stems, lane.stems);
      links = std::max(links, lane.link + 4 * lane.rates->latency);
    }
    if (away_ == 0) return Bound::kDevice;
    return stems > links ? Bound::kStem : Bound::kLink;
  }

  const JobCosts& job_;
  const ServerRates& server_;
  const CutCosts& cut_;
  const uint32_t away_;
  const bool ahead_;  // forward passes need not wait for this step's weights
  std::vector<Lane> lanes_;
  std::vector<Away> stems_;
  double card_up_ = 0;  // the server's network card, when it has sent or taken what is known
  double card_down_ = 0;
  double card_stems_ = 0;  // seconds that stems take it, in its busier direction
  double device_free_ = 0;
  double device_busy_ = 0;
  double last_gradient_ = 0;
};

}  // namespace

const char* to_string(Bound bound) {
  switch (bound) {
    case Bound::kDevice:
      return "the device";
    case Bound::kDecode:
      return "decoding";
    case Bound::kStem:
      return "the workers' stems";
    case Bound::kLink:
      return "the links";
  }
  return "";
}

Prediction predict(const JobCosts& job, const ServerRates& server,
                   std::span<const WorkerRates> workers, const Choice& choice) {
  return Step(job, server, workers, choice).run();
}

}  // namespace outrigger::training
