#include "training/planner/model/step_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "feed/plan.h"
#include "training/planner/model/step_schedule.h"

namespace outrigger::training {
namespace {

/// Of a sum of rounded numbers.
constexpr double kNearlyAll = 1 - 1e-9;
constexpr double kNearlyOnce = 1 + 1e-9;
/// A bound need not be met to the last.
constexpr double kNearly = 0.98;
/// Of a step: without the rest it would take a tenth less.
constexpr double kMostly = 0.9;
/// What is kept local must shorten the step by so much.
constexpr double kWorthIt = 0.995;

const Prediction kImpossible{std::numeric_limits<double>::infinity(), 0, Bound::kStem, 0};

/// What pixels add to a step that is laid out.
class Input {
 public:
  Input(const JobCosts& job, const ServerRates& server, const CutCosts& cut,
        const StepSchedule& schedule)
      : job_(job), server_(server), cut_(cut), schedule_(schedule) {}

  Prediction with(uint32_t local) const {
    const double whole = stretch(local);
    return {whole, schedule_.device_busy(), bound(whole, local), local_input(whole, local)};
  }

  LocalInput best_local() const {
    const uint32_t most = job_.micro_batches - schedule_.away();
    LocalInput best{0, with(0)};
    if (best.prediction.seconds <= schedule_.end()) return best;
    // More kept local takes the server longer and the workers shorter: the best lies where workers
    // no longer hold the step up.
    uint32_t low = 0;
    uint32_t high = most;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (std::max(schedule_.end(), local_seconds(middle)) >= remote_seconds(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    for (const uint32_t local : {low == 0 ? 0 : low - 1, low}) {
      const Prediction one = with(local);
      if (one.seconds < kWorthIt * best.prediction.seconds) best = {local, one};
    }
    return best;
  }

 private:
  /// How many frozen stems, that run ahead, a worker could bring in so many seconds.
  double frozen_in(const Lane& lane, double seconds) const {
    if (!lane.able) return 0;
    const double cores = schedule_.forward(lane) + lane.rates->decode;
    return seconds / std::max({cores, schedule_.upload(lane), 1e-12});
  }

  /// The part of their time that workers spend on frozen stems, if these are shared out by how many
  /// each can bring; above 1: they cannot bring them all.
  double frozen_part(double seconds) const {
    if (!schedule_.frozen()) return 0;
    double all = 0;
    for (const Lane& lane : schedule_.lanes()) all += frozen_in(lane, seconds);
    return schedule_.away() / std::max(all, 1e-12);
  }

  /// What stems take of a worker in a step: seconds of its cores and of its link, and pixels that
  /// it must decode for them.
  struct Taken {
    double cores = 0;
    double up = 0;
    double down = 0;
    double decodes = 0;
  };
  Taken taken(const Lane& lane, double frozen) const {
    return {lane.stems + frozen * schedule_.forward(lane),
            lane.up + frozen * schedule_.upload(lane), lane.down, lane.decodes + frozen};
  }

  double card_taken() const {
    return schedule_.card_stems() +
           (schedule_.frozen() ? schedule_.away() * schedule_.card(cut_.activations) : 0);
  }

  /// How many micro-batches' pixels workers can bring in a step of so many seconds beside
  /// everything else; negative where not even the stems' own can be decoded.
  double brought_in(double seconds) const {
    const double part = frozen_part(seconds);
    if (part > kNearlyOnce || card_taken() > seconds) return -1;
    double total = 0;
    for (const Lane& lane : schedule_.lanes()) {
      const Taken stems = taken(lane, part * frozen_in(lane, seconds));
      const double can = (seconds - stems.cores) / std::max(lane.rates->decode, 1e-12);
      if (can < stems.decodes * kNearlyAll) return -1;
      if (std::max(stems.up, stems.down) > seconds * kNearlyOnce) return -1;
      const double link = pixels_work(job_) / lane.rates->whole_speed();
      const double each = lane.rates->decode / std::max(lane.rates->decode + link, 1e-12);
      const double wire =
          (seconds - stems.up) * lane.rates->bytes_per_second / std::max(job_.pixels, 1.0);
      total += std::max(0.0, std::min((can - stems.decodes) * each, wire));
    }
    return std::min(total, (seconds - card_taken()) / std::max(schedule_.card(job_.pixels), 1e-12));
  }

  /// The coordinator leases to remote workers first: with so many that they hold all steps that are
  /// drawn, the local worker gets nothing but what is kept for it.
  bool remote_take_all(uint32_t local) const {
    const size_t steps = 1 + feed::steps_ahead(leases(), job_.micro_batches);
    return leases() >= steps * (job_.micro_batches - local);
  }
  size_t leases() const {
    size_t all = 0;
    for (const Lane& lane : schedule_.lanes()) all += lane.rates->leases;
    return all;
  }

  /// What a core-second of links' takes of the server's own worker, or of all that it shares cores
  /// with; seconds.
  double of_links(double work) const { return work / server_.whole_speed(); }
  /// Seconds in which the server's own worker has other work or no cores, where all pixels that
  /// are not kept for it come over links. Links of stems are the device's where it shares cores.
  double own_taken(uint32_t local) const {
    const double brought = job_.micro_batches - schedule_.away() - local;
    const double stems =
        server_.shared ? schedule_.device_busy() : of_links(schedule_.stem_links());
    return schedule_.own_stems() + stems + of_links(brought * pixels_work(job_));
  }
  /// Each that it decodes beside those need not come.
  double decoded_here(double seconds, uint32_t local) const {
    const double spare = seconds - own_taken(local) - local * server_.decode;
    if (spare < 0) return std::max(0.0, local + spare / std::max(server_.decode, 1e-12));
    return local + spare / std::max(server_.decode - of_links(pixels_work(job_)), 1e-12);
  }

  /// Whether all pixels are there in a step of so many seconds.
  bool enough(double seconds, uint32_t local) const {
    const double here = decoded_here(seconds, local);
    double brought = brought_in(seconds);
    if (brought < 0 || here < kNearlyAll * local) return false;
    if (own_taken(local) > kNearlyOnce * seconds) return false;
    const double wanted = job_.micro_batches - schedule_.away() - local;
    // As soon as a step is drawn workers take so many of it, however long they need for them.
    const double held = std::min(static_cast<double>(leases()), wanted);
    if (brought < kNearlyAll * held) return false;
    if (!remote_take_all(local)) brought += std::max(0.0, here - local);
    return brought >= kNearlyAll * wanted;
  }

  double local_seconds(uint32_t local) const { return local * server_.decode + own_taken(local); }
  /// The least step in which workers bring what is not kept local.
  double remote_seconds(uint32_t local) const {
    const double wanted = job_.micro_batches - schedule_.away() - local;
    return least_seconds([&](double s) { return brought_in(s) >= kNearlyAll * wanted; });
  }

  double local_input(double whole, uint32_t local) const {
    const double wanted = job_.micro_batches - schedule_.away();
    if (wanted == 0 || !std::isfinite(whole)) return 0;
    return std::clamp(1 - brought_in(whole) / wanted, local / wanted, 1.0);
  }

  double stretch(uint32_t local) const {
    return least_seconds([&](double seconds) { return enough(seconds, local); });
  }

  /// The least step, as scheduled or longer, with which `fits`.
  template <typename Fits>
  double least_seconds(const Fits& fits) const {
    if (fits(schedule_.end())) return schedule_.end();
    double low = schedule_.end();
    double high = std::max(schedule_.end(), 1e-9);
    constexpr int kMostDoublings = 40;
    for (int i = 0; !fits(high); ++i) {
      if (i == kMostDoublings) return std::numeric_limits<double>::infinity();
      low = high;
      high *= 2;
    }
    constexpr int kHalvings = 24;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (fits(middle) ? high : low) = middle;
    }
    return high;
  }

  /// What keeps workers from bringing more pixels, or stems that run ahead.
  Bound input_bound(double whole) const {
    const double part = frozen_part(whole);
    double decoded = 0;
    double sent = 0;
    for (const Lane& lane : schedule_.lanes()) {
      const Taken stems = taken(lane, part * frozen_in(lane, whole));
      decoded += (whole - stems.cores) / std::max(lane.rates->decode, 1e-12) - stems.decodes;
      sent += (whole - stems.up) * lane.rates->bytes_per_second / std::max(job_.pixels, 1.0);
    }
    sent = std::min(sent, (whole - card_taken()) / std::max(schedule_.card(job_.pixels), 1e-12));
    if (sent < decoded) return Bound::kLink;
    return part > kNearly ? Bound::kStem : Bound::kDecode;
  }

  /// Whether the server's cores, which are the device as well, have work for all of a step without
  /// a split, nearly all of it the network's: nothing but less of that would shorten it much.
  bool is_full(double whole, uint32_t local) const {
    if (!server_.shared || schedule_.away() > 0) return false;
    const double here = local_input(whole, local) * job_.micro_batches * server_.decode;
    return schedule_.device_busy() > kMostly * whole && own_taken(local) + here > kNearly * whole;
  }

  Bound bound(double whole, uint32_t local) const {
    if (is_full(whole, local)) return Bound::kDevice;
    for (const Lane& lane : schedule_.lanes()) {
      if (std::max(lane.up, lane.down) > kNearly * whole) return Bound::kLink;
    }
    if (card_taken() > kNearly * whole) return Bound::kLink;
    if (schedule_.end() < kNearly * whole) {
      const bool all_here =
          local + schedule_.away() == job_.micro_batches;  // links bring no pixels
      const bool here = all_here && local_seconds(local) > kNearly * whole;
      return here ? Bound::kDecode : input_bound(whole);
    }
    if (schedule_.device_busy() > kNearly * whole || schedule_.away() == 0) return Bound::kDevice;
    double stems = 0;
    double links = 0;
    for (const Lane& lane : schedule_.lanes()) {
      stems = std::max(stems, lane.stems);
      links = std::max(links, lane.up + lane.down + 4 * lane.rates->latency);
    }
    return stems > links ? Bound::kStem : Bound::kLink;
  }

  const JobCosts& job_;
  const ServerRates& server_;
  const CutCosts& cut_;
  const StepSchedule& schedule_;
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
  const StepSchedule schedule(job, server, workers, choice);
  if (!schedule.possible()) return kImpossible;
  return Input(job, server, job.cuts[choice.cut], schedule)
      .with(std::min(choice.local, job.micro_batches - choice.away));
}

LocalInput best_local_input(const JobCosts& job, const ServerRates& server,
                            std::span<const WorkerRates> workers, const Choice& choice) {
  const StepSchedule schedule(job, server, workers, choice);
  if (!schedule.possible()) return {0, kImpossible};
  return Input(job, server, job.cuts[choice.cut], schedule).best_local();
}

}  // namespace outrigger::training
