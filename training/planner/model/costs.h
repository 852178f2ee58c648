#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feed/plan.h"
#include "feed/room.h"

namespace outrigger::training {

// What the planner knows. Times are seconds, sizes bytes, both of one micro-batch unless said
// otherwise; a *core-second* is what one of the server's cores does in a second when it has nothing
// else to do. Where the device is a GPU, what it does (head, device_stem, optimizer) is in seconds
// of it, and it counts as one core.

/// What a layer costs on one core, for one micro-batch; a group of layers that runs as one counts
/// for its parts.
struct LayerCosts {
  std::string name;
  double forward = 0;   // core-seconds
  double backward = 0;  // core-seconds
  double kept = 0;      // bytes from its forward to its backward where nothing is recomputed
  double weights = 0;   // bytes of its parameters
};

/// What a legal cut costs.
struct CutCosts {
  int32_t cut = 0;  // layers before it
  std::string name = "Input";
  bool trains = false;        // gradients come back
  double stem_forward = 0;    // core-seconds
  double stem_backward = 0;   // core-seconds; 0 where nothing before the cut trains
  double head = 0;            // core-seconds, forward and backward behind the cut
  double activations = 0;     // bytes on the wire
  double gradients = 0;       // bytes on the wire, of the activations' gradient
  double weights = 0;         // bytes of the stem's parameters, and of their gradients
  double server_percent = 0;  // of the multiply-adds, where all stems are away
  double stem_kept = 0;       // bytes of a micro-batch from the stem's forward to its backward
  double stem_fixed = 0;      // bytes of its packed weights and work space
  double head_kept = 0;       // likewise behind the cut
  double head_fixed = 0;
  double crossing = 0;  // bytes of the activations at the cut in memory
  /// A stem, forward and backward, on a device of another kind than cores are, as `head` is then;
  /// absent: the device is cores like others.
  std::optional<double> device_stem = std::nullopt;
  /// A stem on the device, forward and backward.
  double stem_here() const { return device_stem.value_or(stem_forward + stem_backward); }
};

/// What links take of the cores at each of their two ends; core-seconds. A frame is all that is
/// sent at once.
struct LinkWork {
  double frame = 0;        // for each that is sent or taken in
  double byte = 0;         // for each of its bytes
  double activations = 0;  // for each byte in memory of activations that are packed or unpacked
  double gradients = 0;    // likewise of their gradients
};

/// What does not change while a job runs.
struct JobCosts {
  std::vector<CutCosts> cuts;  // the first is "Input"
  std::vector<LayerCosts> layers;
  uint32_t micro_batches = 1;  // M
  uint64_t staleness = 0;      // s
  double pixels = 0;           // bytes
  double optimizer = 0;        // core-seconds of a step
  double parameters = 0;       // bytes of all parameters
  double copies = 4;  // of them in the server: weights, momentum, gradients, their sum, …
  /// None where times were measured while links were at work, which is in them then.
  LinkWork link_work;
};

/// What a micro-batch that travels takes of the cores at each end, with its lease: as pixels, as
/// activations at a cut, and when the gradients of these and of the stem follow.
inline double pixels_work(const JobCosts& job) {
  return 2 * job.link_work.frame + job.link_work.byte * job.pixels;
}
inline double activations_work(const JobCosts& job, const CutCosts& cut) {
  const LinkWork& work = job.link_work;
  return 2 * work.frame + work.byte * cut.activations + work.activations * cut.crossing;
}
inline double gradients_work(const JobCosts& job, const CutCosts& cut) {
  if (!cut.trains) return 0;
  const LinkWork& work = job.link_work;
  return 2 * work.frame + work.byte * (cut.gradients + cut.weights) + work.gradients * cut.crossing;
}

using feed::kLeasesInHand;

/// The server as measured. `cores`: core-seconds a second that its device does.
struct ServerRates {
  double cores = 1;
  double decode = 0;     // seconds for a micro-batch, on all cores that the local worker has
  bool shared = true;    // device and local worker share cores
  double own_cores = 1;  // core-seconds a second that the local worker does where they do not
  double stem_part = 1;  // of these, that stems of its own keep at work
  /// Core-seconds a second for what is not made of blocks.
  double whole_speed() const { return shared ? std::max(cores, own_cores) : own_cores; }
  /// What goes through its network card in each direction, over all workers.
  double bytes_per_second = std::numeric_limits<double>::infinity();
  double memory = std::numeric_limits<double>::infinity();  // bytes free for the job
};

/// Of a link that is not measured yet.
inline constexpr double kUnknownLink = 1e9;  // bytes a second

/// A remote worker as measured.
struct WorkerRates {
  double stem_speed = 1;  // core-seconds a second that it does, with all its cores
  double decode = 0;      // seconds for a micro-batch, with all its cores
  double bytes_per_second = kUnknownLink;
  double latency = 0;  // seconds, one way
  bool stems = true;   // may run stems
  /// Bytes free for the job, besides pixels of leases beyond kLeasesInHand.
  double memory = std::numeric_limits<double>::infinity();
  uint32_t leases = kLeasesInHand;  // it has room for
  double cores = 0;  // core-seconds a second that all its cores do; 0: as those at stems
  /// Core-seconds a second for what is not made of blocks.
  double whole_speed() const { return std::max(cores, stem_speed); }
};

/// How many leases they all have room for.
inline size_t leases_of(std::span<const WorkerRates> workers) {
  size_t leases = 0;
  for (const WorkerRates& one : workers) leases += one.leases;
  return leases;
}

/// Another rank of the job: a server, with workers of its own.
struct RankRates {
  ServerRates server;
  std::vector<WorkerRates> workers;
};

/// How a step is divided: a place in JobCosts::cuts, how many of M stems run on workers, and of how
/// many others the server's own worker makes the pixels, because the links are too narrow for them.
struct Choice {
  size_t cut = 0;
  uint32_t away = 0;
  uint32_t local = 0;
  auto operator<=>(const Choice&) const =
      default;  // NOLINT(modernize-use-nullptr): its own rewriting
};

/// How many of the micro-batches whose stems run on the device come behind the others: of cores,
/// which add gradients up in order. A device with arrays of its own runs many at once.
inline uint32_t here_last(const JobCosts& job, const Choice& choice) {
  const CutCosts& cut = job.cuts[choice.cut];
  if (!cut.trains || cut.device_stem) return 0;
  return feed::best_here_last(job.micro_batches, choice.away);
}

}  // namespace outrigger::training
