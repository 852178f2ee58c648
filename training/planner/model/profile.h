#pragma once

#include <cstdint>
#include <string>

#include "training/planner/model/costs.h"
#include "training/planner/planner.h"

namespace outrigger::training {

/// A job as one machine has measured it: what `outrigger plan -o json` writes under "profile", and
/// what the simulator and emulated devices read. Core-seconds are of a core of that machine.
struct Profile {
  JobCosts costs;
  PlannerOptions options;    // what spec.split leaves open
  uint64_t samples = 0;      // of an epoch
  uint32_t batch = 0;        // samples of a step, over all ranks
  uint32_t micro_batch = 0;  // samples
  double decode = 0;         // core-seconds to read, decode and augment a micro-batch
  /// Samples of the blocks that a pass on cores is made of, each for one core
  /// (nn::cpu::block_samples); 0: not known.
  uint32_t block_samples = 0;
};

/// How many of so many cores passes over such a micro-batch keep at work in the mean: those that
/// have no block left wait for the others. A part of a core is a quota's.
double cores_at_work(uint32_t block_samples, uint32_t micro_batch, double cores);
inline double cores_at_work(const Profile& profile, double cores) {
  return cores_at_work(profile.block_samples, profile.micro_batch, cores);
}

/// One JSON object; seconds and bytes.
std::string to_json(const Profile& profile);
/// The profile in a JSON text: the object itself, or its member "profile". Throws InvalidInput that
/// names what is missing or impossible; `name`: what to call the text.
Profile read_profile(const std::string& text, const std::string& name);

}  // namespace outrigger::training
